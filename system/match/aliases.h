/* Words that people use for kinds of applications, and what such applications are called. */
#ifndef SY_ALIASES_H
#define SY_ALIASES_H

enum sy_alias {
    SY_NO_ALIAS,
    SY_ALIAS_OF_KIND,  /* the word says what kind of application it is: "terminal" */
    SY_ALIAS_OF_TOPIC, /* what one does or has with it: "music" */
    SY_ALIAS_OF_OTHER, /* it is the name of another one that does the same: "word" */
};

/* What `word` is to the application with this name or program; both in small letters without gaps. Pure. */
enum sy_alias sy_alias_fits(const char *word, const char *name);

#endif
