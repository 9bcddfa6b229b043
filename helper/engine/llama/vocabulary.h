/* llama.cpp's vocabulary in the form that grammars need. */
#ifndef FM_ENGINE_LLAMA_VOCABULARY_H
#define FM_ENGINE_LLAMA_VOCABULARY_H

#include "engine/guide/grammar.h"
#include "engine/llama/prompt.h"

/* The vocabulary of `prompter`, which must outlive it. Allocates nothing. */
struct fm_vocabulary fm_prompter_vocabulary(const struct fm_prompter *prompter);

#endif
