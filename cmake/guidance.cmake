# llguidance, the library that limits a model's output to a grammar. It is written in Rust; cargo builds it into one static
# library.
#
#   FM_GUIDANCE=auto  (default) where packaging/setup.sh has brought the crates and there is a cargo
#   FM_GUIDANCE=on    the same, and an error where it can't be had
#   FM_GUIDANCE=off   without: a request that asks for a format is refused then
#
#   FM_DEPS_DIR       its folder rust/vendor holds the crates, as `cargo vendor` puts them
#
#   FM_RUST_TARGET    the machine that it is compiled for, as rustc names it; by default this one
#   FM_RUSTC          the compiler; by default the one that cargo finds
#   FM_RUST_STD_SOURCE  the folder `library` of Rust's source, of the compiler's release: the standard library for that machine
#                     is built of it
#
# guidance_patch.cmake adds one file to llguidance's sources, in a copy below FM_DEPS_DIR.
#
# Provides, unless off: the target fm::guidance, with the headers llguidance.h and guidance.h. FM_GUIDANCE is on or off
# afterwards.
include_guard(GLOBAL)

set(FM_GUIDANCE auto CACHE STRING "constrained output by llguidance: auto, on or off")
set_property(CACHE FM_GUIDANCE PROPERTY STRINGS auto on off)

find_program(FM_CARGO cargo)
set(fm_rust_output release)
if(FM_RUST_TARGET)
  set(fm_rust_target --target "${FM_RUST_TARGET}" --config "target.${FM_RUST_TARGET}.linker='${CMAKE_C_COMPILER}'")
  set(fm_rust_output "${FM_RUST_TARGET}/release")
endif()
if(FM_RUSTC)
  set(fm_rustc "${CMAKE_COMMAND}" -E env "RUSTC=${FM_RUSTC}")
endif()
if(FM_RUST_STD_SOURCE)
  list(APPEND fm_rustc RUSTC_BOOTSTRAP=1) # cargo has it as a preview
  list(APPEND fm_rust_target -Zbuild-std=std,panic_unwind)
  set(fm_rust_std -D "STD=${FM_RUST_STD_SOURCE}/vendor")
endif()
set(fm_crates "${FM_DEPS_DIR}/rust/vendor")
string(TOLOWER "${FM_GUIDANCE}" fm_guidance_mode)
if(NOT fm_guidance_mode MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "FM_GUIDANCE is \"${FM_GUIDANCE}\"; it must be auto, on or off")
endif()
if(NOT fm_guidance_mode STREQUAL "off" AND NOT (FM_CARGO AND EXISTS "${fm_crates}/llguidance/llguidance.h"))
  if(fm_guidance_mode STREQUAL "on")
    message(FATAL_ERROR "FM_GUIDANCE=on needs cargo and ${fm_crates}. Run `sh packaging/setup.sh --no-build` first")
  endif()
  message(WARNING "without llguidance (no cargo, or no ${fm_crates}): requests for a format will be refused")
  set(fm_guidance_mode off)
endif()

if(NOT fm_guidance_mode STREQUAL "off")
  # All presets of a checkout share one library, because its code is the same in each.
  set(fm_crate "${CMAKE_SOURCE_DIR}/helper/engine/guide/guidance")
  set(fm_cargo_dir "${FM_DEPS_DIR}/rust/target")
  set(fm_guidance_library "${fm_cargo_dir}/${fm_rust_output}/libfm_guidance.a")
  set(fm_patch "${CMAKE_SOURCE_DIR}/cmake/guidance_patch.cmake")
  set(fm_patched "${FM_DEPS_DIR}/rust/patched")
  set(fm_patch_sum "")
  foreach(file IN ITEMS "${fm_patch}" "${fm_crate}/numbers.rs")
    file(SHA256 "${file}" sum)
    string(SUBSTRING "${sum}" 0 8 sum)
    string(APPEND fm_patch_sum "-${sum}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${fm_patch}" "${fm_crate}/numbers.rs")
  add_custom_command(
    OUTPUT "${fm_guidance_library}"
    COMMAND "${CMAKE_COMMAND}" -D "FROM=${fm_crates}" -D "NUMBERS=${fm_crate}/numbers.rs" -D "TO=${fm_patched}"
      -D "NAME=llguidance${fm_patch_sum}" ${fm_rust_std} -P "${fm_patch}"
    COMMAND ${fm_rustc} "${FM_CARGO}" build --release --locked --offline --quiet --target-dir "${fm_cargo_dir}"
      ${fm_rust_target}
      --config "source.crates-io.replace-with='vendored'" --config "source.vendored.directory='${fm_patched}'"
      --config "build.rustflags=['--remap-path-prefix=${fm_patched}=', '--remap-path-prefix=${CMAKE_SOURCE_DIR}=.']"
    COMMAND "${CMAKE_COMMAND}" -E touch "${fm_guidance_library}"
    WORKING_DIRECTORY "${fm_crate}"
    DEPENDS "${fm_crate}/Cargo.toml" "${fm_crate}/Cargo.lock" "${fm_crate}/lib.rs" "${fm_crate}/numbers.rs"
      "${fm_patch}"
    COMMENT "building llguidance (a minute or two, once)"
    VERBATIM)
  add_custom_target(fm_guidance_build DEPENDS "${fm_guidance_library}")
  add_library(fm_guidance INTERFACE)
  add_dependencies(fm_guidance fm_guidance_build)
  target_include_directories(fm_guidance SYSTEM INTERFACE "${fm_crates}/llguidance")
  target_link_libraries(fm_guidance INTERFACE "${fm_guidance_library}" Threads::Threads m ${CMAKE_DL_LIBS})
  if(WIN32)
    target_link_libraries(fm_guidance INTERFACE advapi32 bcrypt ntdll userenv ws2_32) # of Rust's standard library
  endif()
  add_library(fm::guidance ALIAS fm_guidance)
endif()
