/* Compiler attributes used across the project. */
#ifndef FM_BASE_COMPILER_H
#define FM_BASE_COMPILER_H

#define FM_MUST_USE __attribute__((warn_unused_result))
#ifdef __MINGW_PRINTF_FORMAT /* the kind of printf that MinGW's stdio.h declares; the compiler assumes another kind */
#define FM_PRINTF(fmt_index, first_arg) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt_index, first_arg)))
#else
#define FM_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
#endif

#endif
