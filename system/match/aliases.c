/* A table of aliases. Both columns have lower-case words without gaps; in the second one, spaces separate them. */
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
    {"chrome chromium", "googlechrome googlechromestable chromium chromiumwebbrowser", SY_ALIAS_OF_KIND},
    {"browser webbrowser internet web internetbrowser",
     "googlechrome googlechromestable chromium chromiumwebbrowser firefox firefoxesr brave microsoftedge vivaldi opera "
     "epiphany librewolf",
     SY_ALIAS_OF_KIND},
    {"vscode vsc code vs", "visualstudiocode code codeoss vscodium", SY_ALIAS_OF_KIND},
    {"editor codeeditor ide codingenvironment",
     "visualstudiocode code codeoss vscodium cursor emacs sublimetext zed neovim gvim intellijidea pycharm eclipse "
     "androidstudio",
     SY_ALIAS_OF_KIND},
    {"editor texteditor notepad", "texteditor gedit gnometexteditor kate mousepad xed pluma emacs", SY_ALIAS_OF_KIND},
    {"terminal console shell term commandline cli bash prompt commandprompt terminalemulator",
     "terminal xterm uxterm gnometerminal konsole alacritty kitty terminator tilix xfceterminal xfce4terminal "
     "lxterminal wezterm foot ghostty",
     SY_ALIAS_OF_KIND},
    {"files filemanager fileexplorer explorer finder filebrowser folders folder",
     "files nautilus thunar dolphin nemo pcmanfm filemanager caja", SY_ALIAS_OF_KIND},
    {"mail email emails mailclient emailclient mailprogram inbox", "thunderbird evolution geary mail mailspring kmail",
     SY_ALIAS_OF_KIND},
    {"music musicplayer audioplayer songs tunes playlist",
     "spotify rhythmbox clementine strawberry lollypop amarok elisa", SY_ALIAS_OF_KIND},
    {"video videos videoplayer mediaplayer movieplayer player",
     "vlc vlcmediaplayer mpv totem videos celluloid smplayer", SY_ALIAS_OF_KIND},
    {"videoeditor videoediting", "kdenlive shotcut openshot openshotvideoeditor pitivi davinciresolve",
     SY_ALIAS_OF_KIND},
    {"calculator calc", "calculator gnomecalculator kcalc galculator matecalc", SY_ALIAS_OF_KIND},
    {"wordprocessor writer textdocument", "libreofficewriter abiword", SY_ALIAS_OF_KIND},
    {"word msword", "libreofficewriter", SY_ALIAS_OF_OTHER},
    {"spreadsheet spreadsheets spreadsheetprogram sheet sheets", "libreofficecalc gnumeric", SY_ALIAS_OF_KIND},
    {"excel", "libreofficecalc", SY_ALIAS_OF_OTHER},
    {"presentation presentations slideshow presentationprogram", "libreofficeimpress", SY_ALIAS_OF_KIND},
    {"powerpoint slides", "libreofficeimpress", SY_ALIAS_OF_OTHER},
    {"gimp imageeditor photoeditor pictureeditor", "gimp gnuimagemanipulationprogram", SY_ALIAS_OF_KIND},
    {"photoshop", "gimp gnuimagemanipulationprogram krita", SY_ALIAS_OF_OTHER},
    {"drawing paint painting drawingprogram paintprogram drawingtool paintingprogram draw art",
     "krita mypaint pinta kolourpaint drawing", SY_ALIAS_OF_KIND},
    {"drawing vector vectorgraphics vectoreditor vectorgraphicseditor vectordrawing illustration svgeditor", "inkscape",
     SY_ALIAS_OF_KIND},
    {"illustrator", "inkscape", SY_ALIAS_OF_OTHER},
    {"3d 3dmodeling 3dmodelling 3dmodeler 3dmodeller 3deditor modeling modelling modeler 3dsoftware", "blender freecad",
     SY_ALIAS_OF_KIND},
    {"photos photo photomanager photoviewer photolibrary pictures picture images imageviewer gallery pics",
     "shotwell gthumb digikam photos gwenview eyeofgnome eog imageviewer", SY_ALIAS_OF_KIND},
    {"settings preferences controlpanel systemsettings",
     "settings gnomecontrolcenter systemsettings xfce4settingsmanager", SY_ALIAS_OF_KIND},
    {"taskmanager systemmonitor activitymonitor",
     "systemmonitor gnomesystemmonitor ksysguard taskmanager xfce4taskmanager", SY_ALIAS_OF_KIND},
    {"pdf pdfs pdfreader pdfviewer documentviewer documentreader", "documentviewer evince okular atril xreader zathura",
     SY_ALIAS_OF_KIND},
    {"clock", "xclock clocks gnomeclocks", SY_ALIAS_OF_KIND},
    {"messenger chat messaging messages texts", "slack telegram telegramdesktop signal element discord whatsapp",
     SY_ALIAS_OF_KIND},
    {"videocall videocalls videochat videoconference videoconferencing meeting call meetings",
     "zoom zoomworkplace skype microsoftteams teams jitsimeet", SY_ALIAS_OF_KIND},
    {"notes note notetaking notestaking notetaker notebook",
     "obsidian notes joplin evernote notion logseq standardnotes simplenote bijiben", SY_ALIAS_OF_KIND},
    {"reference references referencemanager citation citations citationmanager bibliography", "zotero mendeley jabref",
     SY_ALIAS_OF_KIND},
    {"database databases databasetool databaseclient databasemanager db dbclient dbtool sqlclient sql",
     "dbeaver pgadmin beekeeperstudio mysqlworkbench", SY_ALIAS_OF_KIND},
    {"api apis apiclient apitool apitester apitesting", "postman insomnia bruno", SY_ALIAS_OF_KIND},
    {"containers container containermanager", "dockerdesktop podmandesktop", SY_ALIAS_OF_KIND},
    {"git gitclient gitgui", "githubdesktop gitkraken sourcetree gitg", SY_ALIAS_OF_KIND},
    {"game games gaming gamelauncher gamelibrary", "steam lutris heroic", SY_ALIAS_OF_KIND},
    {"recorder recording screenrecorder screenrecording screencast streaming stream recordingsoftware broadcast "
     "streamingsoftware capture screencapture",
     "obs obsstudio kazam simplescreenrecorder", SY_ALIAS_OF_KIND},
    {"archive archives archiver archivemanager zip unzip ziptool", "fileroller ark archivemanager xarchiver",
     SY_ALIAS_OF_KIND},
    {"calendar agenda schedule", "calendar gnomecalendar korganizer", SY_ALIAS_OF_KIND},
    {"vm virtualbox virtualmachine", "virtualbox oraclevmvirtualbox virtualmachinemanager", SY_ALIAS_OF_KIND},
};

/* Words for what people do or have with an application; they do not mean the application itself. */
static const char topics[] =
    "gaming game games music songs tunes playlist video videos photos photo pictures picture images "
    "pics art drawing painting paint draw recording streaming stream capture screencast notes note "
    "messages texts messaging meeting call meetings videocall videocalls api apis sql db database "
    "databases git reference references citation citations bibliography modeling modelling 3d vector "
    "illustration inbox mail email emails folders folder files archives archive zip unzip "
    "containers container pdf pdfs presentation presentations slideshow sheet sheets calendar agenda "
    "schedule web internet chat prompt cli";

enum sy_alias sy_alias_fits(const char *word, const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (sy_is_one_of(word, aliases[i].words) && sy_is_one_of(name, aliases[i].names)) {
            bool topic = aliases[i].alias == SY_ALIAS_OF_KIND && sy_is_one_of(word, topics);
            return topic ? SY_ALIAS_OF_TOPIC : aliases[i].alias;
        }
    }
    return SY_NO_ALIAS;
}
