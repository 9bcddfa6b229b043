/* A table of aliases. Both columns are words in small letters without gaps; the second one separates them by spaces. */
#include "match/aliases.h"

#include <stddef.h>
#include <string.h>

struct alias {
    const char *words;
    const char *names;
};

static const struct alias aliases[] = {
    {"chrome", "googlechrome googlechromestable chromium chromiumwebbrowser"},
    {"browser webbrowser internet web", "googlechrome googlechromestable chromium chromiumwebbrowser firefox firefoxesr brave"},
    {"vscode vsc code vs", "visualstudiocode code codeoss vscodium"},
    {"editor texteditor notepad", "texteditor gedit gnometexteditor kate mousepad xed pluma"},
    {"terminal console shell term commandline",
     "terminal xterm uxterm gnometerminal konsole alacritty kitty terminator tilix xfceterminal xfce4terminal lxterminal"},
    {"files filemanager fileexplorer explorer finder", "files nautilus thunar dolphin nemo pcmanfm filemanager"},
    {"mail email emails mailclient", "thunderbird evolution geary mail mailspring"},
    {"music musicplayer", "spotify rhythmbox clementine strawberry lollypop"},
    {"video videoplayer mediaplayer", "vlc vlcmediaplayer mpv totem videos celluloid"},
    {"calculator calc", "calculator gnomecalculator kcalc galculator matecalc"},
    {"word wordprocessor writer", "libreofficewriter"},
    {"excel spreadsheet spreadsheets", "libreofficecalc"},
    {"powerpoint slides", "libreofficeimpress"},
    {"photoshop imageeditor", "gimp gnuimagemanipulationprogram"},
    {"settings preferences controlpanel systemsettings", "settings gnomecontrolcenter systemsettings xfce4settingsmanager"},
    {"taskmanager systemmonitor activitymonitor", "systemmonitor gnomesystemmonitor ksysguard taskmanager xfce4taskmanager"},
    {"pdf pdfreader pdfviewer documentviewer", "documentviewer evince okular atril"},
    {"clock", "xclock clocks gnomeclocks"},
    {"messenger chat", "slack telegram telegramdesktop signal element"},
    {"vm virtualbox virtualmachine", "virtualbox oraclevmvirtualbox virtualmachinemanager"},
};

static bool has_word(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, " ");
        if (size == len && memcmp(at, word, len) == 0) {
            return true;
        }
        at += size + (at[size] == ' ');
    }
    return false;
}

bool sy_alias_fits(const char *word, const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (has_word(aliases[i].words, word) && has_word(aliases[i].names, name)) {
            return true;
        }
    }
    return false;
}
