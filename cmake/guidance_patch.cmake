# Makes a folder of crates for cargo in which two crates are changed; the others are links.
# - llguidance's JSON compiler has one more file, numbers.rs: the release allows numbers of any length.
# - derivre, which llguidance's regular expressions are made of, writes their classes inside of a JSON string exactly. The release
#   lets a class without a quote or a backslash, such as [^"], match \" and \\ as well.
#
# usage: cmake -D FROM=VENDOR -D NUMBERS=numbers.rs -D TO=FOLDER -D NAME=CRATE [-D STD=VENDOR] -P guidance_patch.cmake
#   CRATE  llguidance's folder in FOLDER; derivre's has "derivre" in place of "llguidance". cargo takes a crate of a registry for
#          unchanged as long as its folder is the same: a patch that changed needs another name
#   STD    the crates of Rust's standard library, where that is built too
#
# If a release is not as expected, that is an error. Then check which parts of this file are still needed.
cmake_minimum_required(VERSION 3.20)

# Replaces `from` in the variable `text`. It is an error if `from` does not occur exactly `times` times there.
function(replace_exactly text from to times)
  string(REPLACE "${from}" "${to}" replaced "${${text}}")
  string(LENGTH "${${text}}" old)
  string(LENGTH "${replaced}" new)
  string(LENGTH "${from}" from_length)
  string(LENGTH "${to}" to_length)
  math(EXPR expected "${old} + ${times} * (${to_length} - ${from_length})")
  if(NOT new EQUAL expected)
    message(FATAL_ERROR "${FROM} does not have the releases that cmake/guidance_patch.cmake was written for")
  endif()
  set(${text} "${replaced}" PARENT_SCOPE)
endfunction()

set(made "${TO}.new")
file(REMOVE_RECURSE "${TO}" "${made}")
file(MAKE_DIRECTORY "${made}")
file(GLOB crates RELATIVE "${FROM}" "${FROM}/*")
list(REMOVE_ITEM crates llguidance derivre)
foreach(crate IN LISTS crates)
  file(CREATE_LINK "${FROM}/${crate}" "${made}/${crate}" SYMBOLIC)
endforeach()
if(STD)
  file(GLOB crates RELATIVE "${STD}" "${STD}/*") # each has its version in its name
  foreach(crate IN LISTS crates)
    file(CREATE_LINK "${STD}/${crate}" "${made}/${crate}" SYMBOLIC)
  endforeach()
endif()
string(REPLACE "llguidance" "derivre" DERIVRE "${NAME}")
file(COPY "${FROM}/llguidance/" DESTINATION "${made}/${NAME}")
file(COPY "${FROM}/derivre/" DESTINATION "${made}/${DERIVRE}")

set(compiler "${made}/${NAME}/src/json/compiler.rs")
file(READ "${compiler}" code)
replace_exactly(code "let mut ast = RegexAst::Regex(rx);" "let mut ast = numbers::limited(rx, num);" 2)
file(WRITE "${compiler}" "${code}\nmod numbers;\n")
file(COPY "${NUMBERS}" DESTINATION "${made}/${NAME}/src/json/compiler")

# This is about the escapes of control characters. \" and \\ are added elsewhere, for a class that has them.
set(builder "${made}/${DERIVRE}/src/regexbuilder.rs")
file(READ "${builder}" code)
replace_exactly(code [[for c in b"\"\\bfrt" {]] [[for c in b"bfrt" {]] 1)
file(WRITE "${builder}" "${code}")

# Nobody uses a staticlib or cdylib of llguidance alone, and a linker for another system may lack a library to make one.
set(manifest "${made}/${NAME}/Cargo.toml")
file(READ "${manifest}" code)
replace_exactly(code "    \"staticlib\",\n    \"rlib\",\n    \"cdylib\",\n" "    \"rlib\",\n" 1)
file(WRITE "${manifest}" "${code}")

# cargo compares the checksums of a crate's files that are listed, so none is listed.
foreach(crate IN ITEMS "${NAME}" "${DERIVRE}")
  set(sums "${made}/${crate}/.cargo-checksum.json")
  file(READ "${sums}" code)
  string(REGEX REPLACE "\"files\":{[^}]*}" "\"files\":{}" code "${code}")
  file(WRITE "${sums}" "${code}")
endforeach()
file(RENAME "${made}" "${TO}")
