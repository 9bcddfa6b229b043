/* llama.cpp's vocabulary as grammars want it. */
#ifndef FM_ENGINE_LLAMA_VOCABULARY_H
#define FM_ENGINE_LLAMA_VOCABULARY_H

#include "engine/guide/grammar.h"
#include "engine/llama/prompt.h"

/* That of `prompter`, which must outlive it. Allocates nothing. */
struct fm_vocabulary fm_prompter_vocabulary(const struct fm_prompter *prompter);

#endif
