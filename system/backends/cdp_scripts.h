/*
 * The texts in fm-system's calls to a browser that the broker compares: it lets no other script or filter through. Each
 * script runs in an isolated world, where a page can't have changed what the names mean.
 */
#ifndef SY_CDP_SCRIPTS_H
#define SY_CDP_SCRIPTS_H

#define SY_CDP_WORLD "fm-system"

/* The `filter` for targets: only tabs. */
#define SY_CDP_TABS "[{\"type\":\"tab\"}]"

/* When the page was loaded, in ms since 1970. */
#define SY_CDP_OPENED "performance.timeOrigin"

/*
 * A script that returns what the page is about, or null. toWellFormed replaces half surrogate pairs, which JSON can't
 * have.
 */
#define SY_CDP_TEXT                                                                                                    \
    "(()=>{const m=document.querySelector('meta[name=\"description\" i],meta[property=\"og:description\" i]');"        \
    "const t=(m&&m.content.trim())||(document.body&&document.body.innerText)||'';"                                     \
    "return Array.from(t.slice(0,4000).toWellFormed().replace(/[\\s\\p{Cc}\\p{Cf}]+/gu,' ').trim())"                   \
    ".slice(0,200).join('')||null})()"

#endif
