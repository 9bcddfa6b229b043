/*
 * The calls that fm-system makes to a browser, as far as the broker has to know them: it lets nothing else through.
 * Each script runs in an isolated world, where a page can't have changed what the names mean.
 */
#ifndef SY_CDP_SCRIPTS_H
#define SY_CDP_SCRIPTS_H

#define SY_CDP_WORLD "fm-system"

/* The types of targets that are asked for, as a `filter`. */
#define SY_CDP_TABS "[{\"type\":\"tab\"}]"

/* When the page was loaded, in ms since 1970. */
#define SY_CDP_OPENED "performance.timeOrigin"

/* What the page is about, or null. toWellFormed: half of a surrogate pair is no JSON. */
#define SY_CDP_TEXT                                                                                                    \
    "(()=>{const m=document.querySelector('meta[name=\"description\" i],meta[property=\"og:description\" i]');"        \
    "const t=(m&&m.content.trim())||(document.body&&document.body.innerText)||'';"                                     \
    "return Array.from(t.slice(0,4000).toWellFormed().replace(/[\\s\\p{Cc}\\p{Cf}]+/gu,' ').trim())"                   \
    ".slice(0,200).join('')||null})()"

#endif
