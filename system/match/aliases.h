/* Words that people use for kinds of applications, and the names of such applications. */
#ifndef SY_ALIASES_H
#define SY_ALIASES_H

enum sy_alias {
    SY_NO_ALIAS,
    SY_ALIAS_OF_KIND,  /* the kind of application: "terminal" */
    SY_ALIAS_OF_TOPIC, /* what people do or have with the application: "music" */
    SY_ALIAS_OF_OTHER, /* the name of another application that does the same: "word" */
};

/* How `word` is related to the application with this name or program. Both are in lower case without gaps. Pure. */
enum sy_alias sy_alias_fits(const char *word, const char *name);

#endif
