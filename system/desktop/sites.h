/* Words that people use for sites, and where these are. Sorted by word. One word each, in small letters. */
#ifndef SY_SITES_H
#define SY_SITES_H

#define SY_SITES(SITE)                                                                                                 \
    SITE("amazon", "amazon.com")                                                                                       \
    SITE("arxiv", "arxiv.org")                                                                                         \
    SITE("bbc", "bbc.com")                                                                                             \
    SITE("bluesky", "bsky.app")                                                                                        \
    SITE("calendar", "calendar.google.com")                                                                            \
    SITE("chatgpt", "chatgpt.com")                                                                                     \
    SITE("claude", "claude.ai")                                                                                        \
    SITE("discord", "discord.com/app")                                                                                 \
    SITE("docs", "docs.google.com")                                                                                    \
    SITE("drive", "drive.google.com")                                                                                  \
    SITE("duckduckgo", "duckduckgo.com")                                                                               \
    SITE("ebay", "ebay.com")                                                                                           \
    SITE("facebook", "facebook.com")                                                                                   \
    SITE("figma", "figma.com")                                                                                         \
    SITE("gemini", "gemini.google.com")                                                                                \
    SITE("github", "github.com")                                                                                       \
    SITE("gitlab", "gitlab.com")                                                                                       \
    SITE("gmail", "mail.google.com")                                                                                   \
    SITE("google", "google.com")                                                                                       \
    SITE("hackernews", "news.ycombinator.com")                                                                         \
    SITE("huggingface", "huggingface.co")                                                                              \
    SITE("instagram", "instagram.com")                                                                                 \
    SITE("linkedin", "linkedin.com")                                                                                   \
    SITE("maps", "google.com/maps")                                                                                    \
    SITE("mastodon", "mastodon.social")                                                                                \
    SITE("netflix", "netflix.com")                                                                                     \
    SITE("notion", "notion.so")                                                                                        \
    SITE("npm", "npmjs.com")                                                                                           \
    SITE("outlook", "outlook.com")                                                                                     \
    SITE("pypi", "pypi.org")                                                                                           \
    SITE("reddit", "reddit.com")                                                                                       \
    SITE("slack", "app.slack.com")                                                                                     \
    SITE("spotify", "open.spotify.com")                                                                                \
    SITE("stackoverflow", "stackoverflow.com")                                                                         \
    SITE("twitch", "twitch.tv")                                                                                        \
    SITE("twitter", "x.com")                                                                                           \
    SITE("whatsapp", "web.whatsapp.com")                                                                               \
    SITE("wikipedia", "wikipedia.org")                                                                                 \
    SITE("x", "x.com")                                                                                                 \
    SITE("yahoo", "yahoo.com")                                                                                         \
    SITE("youtube", "youtube.com")

#endif
