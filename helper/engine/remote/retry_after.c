/* Reads Retry-After and HTTP dates. A text that can't be read gives -1, never a guess. */
#include "engine/remote/retry_after.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct date {
    int64_t day; /* 0: not read yet */
    int64_t month;
    int64_t year; /* -1: not read yet */
    int64_t seconds;
};

/* Reads a number of exactly `len` digits; -1: the text is something else. */
static int64_t number(const char *text, size_t len) {
    int64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
        value = value * 10 + (text[i] - '0');
    }
    return len > 0 && len <= 4 ? value : -1;
}

/* Returns the month, 1 to 12; 0: the text is no month. */
static int64_t month_of(const char *text, size_t len) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (size_t i = 0; i < 12 && len == 3; i++) {
        if (memcmp(text, names + 3 * i, 3) == 0) {
            return (int64_t)i + 1;
        }
    }
    return 0;
}

/* Returns the seconds of a time such as "08:49:37"; -1: the text is no time. */
static int64_t time_of(const char *text, size_t len) {
    if (len != 8 || text[2] != ':' || text[5] != ':') {
        return -1;
    }
    int64_t hours = number(text, 2);
    int64_t minutes = number(text + 3, 2);
    int64_t seconds = number(text + 6, 2);
    bool valid = hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && seconds >= 0 && seconds <= 60;
    return valid ? hours * 3600 + minutes * 60 + seconds : -1;
}

/* Reads one word of a date and ignores the day of the week. False: a date can't have this word. */
static bool take_word(struct date *date, const char *word, size_t len, size_t index) {
    int64_t value = number(word, len);
    if (index == 0 || (len == 3 && memcmp(word, "GMT", 3) == 0)) {
        return value < 0;
    }
    if (month_of(word, len) > 0 && date->month == 0) {
        date->month = month_of(word, len);
    } else if (time_of(word, len) >= 0 && date->seconds < 0) {
        date->seconds = time_of(word, len);
    } else if (value > 0 && len <= 2 && date->day == 0) {
        date->day = value;
    } else if (value >= 0 && (len == 4 || len == 2) && date->year < 0) {
        date->year = len == 4 ? value : value + (value < 70 ? 2000 : 1900); /* the second form has two digits */
    } else {
        return false;
    }
    return true;
}

/* Days from 1970-01-01 to the first day of that month, in the Gregorian calendar. */
static int64_t days_before(int64_t year, int64_t month) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t past = year - 1;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int64_t days = past * 365 + past / 4 - past / 100 + past / 400 - 719162;
    return days + before[month - 1] + (leap && month > 2);
}

int64_t fm_http_date(const char *text) {
    struct date date = {.year = -1, .seconds = -1};
    size_t index = 0;
    for (const char *at = text + strspn(text, " ,-"); *at; at += strspn(at, " ,-")) {
        size_t len = strcspn(at, " ,-");
        if (!take_word(&date, at, len, index++)) {
            return -1;
        }
        at += len;
    }
    if (date.day < 1 || date.day > 31 || date.month == 0 || date.year < 1970 || date.seconds < 0) {
        return -1;
    }
    return (days_before(date.year, date.month) + date.day - 1) * 86400 + date.seconds;
}

static int64_t bounded(double ms) {
    return ms > (double)FM_RETRY_AFTER_MAX_MS ? FM_RETRY_AFTER_MAX_MS : (int64_t)ceil(ms);
}

/* Reads a number without sign or exponent, which blanks may follow; -1: the text is something else. */
static double decimal(const char *text) {
    size_t digits = strspn(text, "0123456789");
    size_t fraction = text[digits] == '.' ? 1 + strspn(text + digits + 1, "0123456789") : 0;
    size_t end = digits + fraction;
    bool valid = digits > 0 && text[end + strspn(text + end, " \t")] == '\0';
    return valid ? strtod(text, NULL) : -1;
}

int64_t fm_retry_after(const char *text, int64_t now) {
    double seconds = decimal(text);
    if (seconds >= 0) {
        return bounded(seconds * 1000);
    }
    int64_t date = fm_http_date(text);
    if (date < 0) {
        return -1;
    }
    return date > now ? bounded((double)(date - now) * 1000) : 0;
}

int64_t fm_retry_after_ms(const char *text) {
    double ms = decimal(text);
    return ms >= 0 ? bounded(ms) : -1;
}
