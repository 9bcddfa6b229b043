/* A table of aliases. Both columns are words in small letters without gaps; the second one separates them by spaces. */
#include "match/aliases.h"
#include "match/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct alias {
    const char *words;
    const char *names;
    enum sy_alias alias;
};

static const struct alias aliases[] = {
    {"chrome", "googlechrome googlechromestable chromium chromiumwebbrowser", SY_ALIAS_OF_KIND},
    {"browser webbrowser internet web",
     "googlechrome googlechromestable chromium chromiumwebbrowser firefox firefoxesr brave", SY_ALIAS_OF_KIND},
    {"vscode vsc code vs", "visualstudiocode code codeoss vscodium", SY_ALIAS_OF_KIND},
    {"editor codeeditor ide", "visualstudiocode code codeoss vscodium cursor emacs sublimetext zed", SY_ALIAS_OF_KIND},
    {"editor texteditor notepad", "texteditor gedit gnometexteditor kate mousepad xed pluma", SY_ALIAS_OF_KIND},
    {"terminal console shell term commandline",
     "terminal xterm uxterm gnometerminal konsole alacritty kitty terminator tilix xfceterminal xfce4terminal "
     "lxterminal",
     SY_ALIAS_OF_KIND},
    {"files filemanager fileexplorer explorer finder", "files nautilus thunar dolphin nemo pcmanfm filemanager",
     SY_ALIAS_OF_KIND},
    {"mail email emails mailclient", "thunderbird evolution geary mail mailspring", SY_ALIAS_OF_KIND},
    {"music musicplayer", "spotify rhythmbox clementine strawberry lollypop", SY_ALIAS_OF_KIND},
    {"video videoplayer mediaplayer", "vlc vlcmediaplayer mpv totem videos celluloid", SY_ALIAS_OF_KIND},
    {"calculator calc", "calculator gnomecalculator kcalc galculator matecalc", SY_ALIAS_OF_KIND},
    {"wordprocessor writer", "libreofficewriter", SY_ALIAS_OF_KIND},
    {"word", "libreofficewriter", SY_ALIAS_OF_OTHER},
    {"spreadsheet spreadsheets", "libreofficecalc", SY_ALIAS_OF_KIND},
    {"excel", "libreofficecalc", SY_ALIAS_OF_OTHER},
    {"powerpoint slides", "libreofficeimpress", SY_ALIAS_OF_OTHER},
    {"gimp imageeditor", "gimp gnuimagemanipulationprogram", SY_ALIAS_OF_KIND},
    {"photoshop", "gimp gnuimagemanipulationprogram", SY_ALIAS_OF_OTHER},
    {"settings preferences controlpanel systemsettings",
     "settings gnomecontrolcenter systemsettings xfce4settingsmanager", SY_ALIAS_OF_KIND},
    {"taskmanager systemmonitor activitymonitor",
     "systemmonitor gnomesystemmonitor ksysguard taskmanager xfce4taskmanager", SY_ALIAS_OF_KIND},
    {"pdf pdfreader pdfviewer documentviewer", "documentviewer evince okular atril", SY_ALIAS_OF_KIND},
    {"clock", "xclock clocks gnomeclocks", SY_ALIAS_OF_KIND},
    {"messenger chat", "slack telegram telegramdesktop signal element", SY_ALIAS_OF_KIND},
    {"vm virtualbox virtualmachine", "virtualbox oraclevmvirtualbox virtualmachinemanager", SY_ALIAS_OF_KIND},
};

enum sy_alias sy_alias_fits(const char *word, const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (sy_is_one_of(word, aliases[i].words) && sy_is_one_of(name, aliases[i].names)) {
            return aliases[i].alias;
        }
    }
    return SY_NO_ALIAS;
}
