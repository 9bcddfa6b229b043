/* Sessions on a real disk: acknowledged data is there after a restart, and damage by a crash is repaired. */
#include "loop.h"

#include "sessions/sessions.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>

struct fixture {
    uv_loop_t loop;
    struct gw_journal *journal;
    struct gw_sessions *sessions;
    struct gw_mended mended;
    char key[GW_SESSION_KEY_LEN + 1];
    char blob[GW_BLOB_ID_LEN + 1];
    bool done;
    struct fm_error error; /* from the last callback; code 0: none */
    char *text;            /* from the last view or attachment */
    size_t len;
    bool cut;
};

static struct fixture f;
static struct fm_error error;

static void start(void) {
    char blobs[256];
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(gw_journal_open(&f.loop, &f.journal, &error), FM_OK);
    snprintf(blobs, sizeof blobs, "%s", in_folder("blobs"));
    enum fm_code code = gw_sessions_open(f.journal, in_folder("sessions"), blobs, &f.sessions, &f.mended, &error);
    if (code != FM_OK) {
        fail_msg("%s", error.detail);
    }
}

static void stop(void) {
    gw_sessions_free(f.sessions);
    gw_journal_close(f.journal);
    end_loop(&f.loop);
}

static void restart(void) {
    stop();
    start();
}

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    close(make_folder());
    start();
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    stop();
    free(f.text);
    return nftw(folder_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void note(const struct fm_error *failure) {
    f.error = failure ? *failure : (struct fm_error){.code = FM_OK};
    f.done = true;
}

static void wait_for_it(void) {
    run_until(&f.loop, &f.done);
    f.done = false;
}

static void on_created(void *context, const struct fm_error *failure, const struct gw_session *session) {
    (void)context;
    if (session) {
        snprintf(f.key, sizeof f.key, "%s", session->key);
    }
    note(failure);
}

static void on_done(void *context, const struct fm_error *failure) {
    (void)context;
    note(failure);
}

static void keep(const void *text, size_t len) {
    free(f.text);
    f.text = malloc(len + 1);
    memcpy(f.text, text, len);
    f.text[len] = '\0';
    f.len = len;
}

static void on_view(void *context, const struct fm_error *failure, const char *text, size_t len, bool cut) {
    (void)context;
    f.cut = cut;
    if (!failure) {
        keep(text, len);
    }
    note(failure);
}

static void on_put(void *context, const struct fm_error *failure, const char *id) {
    (void)context;
    snprintf(f.blob, sizeof f.blob, "%s", id ? id : "");
    note(failure);
}

static void on_get(void *context, const struct fm_error *failure, const void *bytes, size_t len) {
    (void)context;
    if (!failure) {
        keep(bytes, len);
    }
    note(failure);
}

static void create(const char *agent) {
    assert_int_equal(gw_session_create(f.sessions, agent, on_created, NULL, &error), FM_OK);
    wait_for_it();
}

static void say(const char *role, const char *content) {
    struct fm_json_writer *w = gw_session_begin(f.sessions, f.key, GW_RECORD_MESSAGE, NULL, &error);
    assert_non_null(w);
    fm_json_key_str(w, "role", role);
    fm_json_key_str(w, "content", content);
    assert_int_equal(gw_session_end(f.sessions, on_done, NULL, NULL, &error), FM_OK);
    wait_for_it();
}

static const char *view(enum gw_view_form form) {
    const struct gw_view what = {.form = form};
    assert_int_equal(gw_session_view(f.sessions, f.key, &what, on_view, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.error.code, FM_OK);
    return f.text;
}

static bool add_title(void *context, const struct gw_session *session) {
    char *all = context;
    snprintf(all + strlen(all), GW_TITLE_MAX + 2, "%s;", session->facts.title);
    return true;
}

static const char *titles(void) {
    static char all[8 * (GW_TITLE_MAX + 2)];
    all[0] = '\0';
    assert_true(gw_sessions_each(f.sessions, add_title, all));
    return all;
}

static void what_was_said_survives(void **state) {
    (void)state;
    create("assistant");
    assert_int_equal(f.error.code, FM_OK);
    assert_int_equal(strlen(f.key), 32);
    say("user", "What is \"five\"?");
    say("assistant", "5 \xe2\x82\xac");
    restart();
    assert_int_equal(f.mended.sessions, 1);
    assert_int_equal(f.mended.torn + f.mended.damaged + f.mended.runs + f.mended.unusable, 0);
    const struct gw_session *session = gw_session_find(f.sessions, f.key);
    assert_non_null(session);
    assert_string_equal(session->facts.title, "What is \"five\"?");
    assert_string_equal(session->facts.agent_id, "assistant");
    assert_int_equal(session->facts.messages, 2);
    assert_non_null(strstr(view(GW_VIEW_MESSAGES), "\"content\":\"5 \xe2\x82\xac\""));
    say("user", "more");
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 3);
}

static bool find_latest(void *context, const struct gw_session *session) {
    *(int64_t *)context = session->facts.updated_ms;
    return false; /* the first one is the latest */
}

static void the_list_is_sorted(void **state) {
    char first[GW_SESSION_KEY_LEN + 1];
    (void)state;
    create("a");
    memcpy(first, f.key, sizeof first);
    say("user", "one");
    create("a");
    do { /* repeats this until the clock has moved on */
        say("user", "two");
    } while (gw_session_find(f.sessions, first)->facts.updated_ms ==
             gw_session_find(f.sessions, f.key)->facts.updated_ms);
    assert_string_equal(titles(), "two;one;");
    memcpy(f.key, first, sizeof first);
    int64_t latest = 0;
    assert_true(gw_sessions_each(f.sessions, find_latest, &latest));
    do {
        say("assistant", "three");
    } while (gw_session_find(f.sessions, first)->facts.updated_ms <= latest);
    assert_string_equal(titles(), "one;two;");
}

static void rename_and_delete(void **state) {
    (void)state;
    create("a");
    say("user", "one");
    assert_int_equal(gw_session_rename(f.sessions, f.key, "", on_done, NULL, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.param, "title");
    assert_int_equal(gw_session_rename(f.sessions, f.key, "Better", on_done, NULL, &error), FM_OK);
    wait_for_it();
    assert_string_equal(titles(), "Better;");
    assert_int_equal(gw_session_attach(f.sessions, f.key, "\0png", 4, on_put, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.error.code, FM_OK);
    restart();
    assert_string_equal(titles(), "Better;");
    assert_int_equal(gw_session_attachment(f.sessions, f.blob, on_get, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.len, 4);
    assert_memory_equal(f.text, "\0png", 4);
    assert_int_equal(gw_session_delete(f.sessions, f.key, on_done, NULL, &error), FM_OK);
    assert_null(gw_session_find(f.sessions, f.key));
    assert_null(gw_session_begin(f.sessions, f.key, GW_RECORD_MESSAGE, NULL, &error));
    assert_int_equal(error.code, FM_NOT_FOUND);
    wait_for_it();
    assert_int_equal(f.error.code, FM_OK);
    assert_int_equal(gw_session_attachment(f.sessions, f.blob, on_get, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.error.code, FM_NOT_FOUND);
    assert_int_equal(gw_session_attachment(f.sessions, "../../etc/passwd", on_get, NULL, &error), FM_NOT_FOUND);
    restart();
    assert_string_equal(titles(), "");
    assert_int_equal(gw_session_view(f.sessions, f.key, &(struct gw_view){0}, on_view, NULL, &error), FM_NOT_FOUND);
}

static void records_are_checked(void **state) {
    struct fm_json_writer *w;
    (void)state;
    create("a");
    w = gw_session_begin(f.sessions, f.key, GW_RECORD_MESSAGE, NULL, &error);
    fm_json_key_str(w, "role", "user");
    assert_int_equal(gw_session_end(f.sessions, on_done, NULL, NULL, &error), FM_INVALID_REQUEST);
    say("user", "it goes on");
    char *long_text = malloc(GW_RECORD_MAX + 1);
    memset(long_text, 'x', GW_RECORD_MAX);
    long_text[GW_RECORD_MAX] = '\0';
    w = gw_session_begin(f.sessions, f.key, GW_RECORD_MESSAGE, NULL, &error);
    fm_json_key_str(w, "role", "user");
    fm_json_key_str(w, "content", long_text);
    assert_int_equal(gw_session_end(f.sessions, on_done, NULL, NULL, &error), FM_INVALID_REQUEST);
    free(long_text);
    say("user", "and on");
    restart();
    assert_int_equal(f.mended.damaged, 0);
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 2);
}

static char *file_name(void) {
    static char name[80];
    snprintf(name, sizeof name, "sessions/%s.jsonl", f.key);
    return name;
}

static void append_to_file(const char *text) {
    int fd = open(in_folder(file_name()), O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void a_torn_line_is_cut(void **state) {
    (void)state;
    create("a");
    say("user", "one");
    append_to_file("{\"seq\":3,\"ti");
    restart();
    assert_int_equal(f.mended.torn, 1);
    assert_int_equal(f.mended.damaged, 0);
    say("user", "two");
    restart();
    assert_int_equal(f.mended.torn, 0);
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 2);
}

static void open_runs_are_closed(void **state) {
    (void)state;
    create("a");
    append_to_file("{\"seq\":2,\"time\":5,\"type\":\"run_started\",\"runId\":\"r\"}\n"
                   "{\"seq\":3,\"time\":5,\"type\":\"tool_call\",\"runId\":\"r\",\"callId\":\"c\",\"name\":\"bash\","
                   "\"input\":{}}\n{\"seq\":4");
    restart();
    assert_int_equal(f.mended.runs, 1);
    assert_int_equal(f.mended.tools, 1);
    assert_non_null(strstr(view(GW_VIEW_RECORDS), "\"outcome\":\"unknown\""));
    say("user", "go on");
    restart();
    assert_int_equal(f.mended.runs + f.mended.tools + f.mended.torn + f.mended.damaged, 0);
}

static size_t files_like(const char *part) {
    DIR *folder = opendir(in_folder("sessions"));
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        count += strstr(entry->d_name, part) != NULL;
    }
    closedir(folder);
    return count;
}

static void a_damaged_file_is_kept(void **state) {
    (void)state;
    create("a");
    say("user", "one");
    append_to_file("broken\n");
    append_to_file("{\"seq\":9,\"time\":5,\"type\":\"message\",\"role\":\"user\",\"content\":\"two\"}\n");
    restart();
    assert_int_equal(f.mended.damaged, 1);
    assert_int_equal(files_like(".damaged-"), 1);
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 2);
    say("user", "three");
    restart();
    assert_int_equal(f.mended.damaged, 0);
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 3);
    assert_int_equal(files_like(".damaged-"), 1);
}

static void a_file_without_a_record_is_gone(void **state) {
    (void)state;
    create("a");
    put_file(file_name(), "{\"seq\":1,", 9); /* this record was never acknowledged */
    restart();
    assert_int_equal(f.mended.sessions, 0);
    assert_int_equal(access(in_folder(file_name()), F_OK), -1);
}

/* An attachment whose file was changed is refused, and not returned as an empty one. */
static void a_damaged_attachment(void **state) {
    char name[sizeof "blobs/" + GW_BLOB_ID_LEN];
    (void)state;
    create("a");
    assert_int_equal(gw_session_attach(f.sessions, f.key, "png", 3, on_put, NULL, &error), FM_OK);
    wait_for_it();
    snprintf(name, sizeof name, "blobs/%s", f.blob);
    const off_t lengths[] = {0, (off_t)GW_BLOB_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(truncate(in_folder(name), lengths[i]), 0);
        assert_int_equal(gw_session_attachment(f.sessions, f.blob, on_get, NULL, &error), FM_OK);
        wait_for_it();
        assert_int_equal(f.error.code, FM_UNAVAILABLE);
    }
}

static size_t count_files_with(const char *text) {
    DIR *folder = opendir(in_folder("sessions"));
    const struct dirent *entry;
    size_t count = 0;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        count += strstr(entry->d_name, text) != NULL;
    }
    closedir(folder);
    return count;
}

/* Deleted data does not stay in the copy that a start has set aside. */
static void a_delete_takes_the_damaged_copy_too(void **state) {
    char path[96];
    (void)state;
    create("a");
    say("user", "one");
    char first[GW_SESSION_KEY_LEN + 1];
    memcpy(first, f.key, sizeof first);
    append_to_file("broken\n");
    create("b");
    append_to_file("broken\n");
    restart();
    assert_int_equal(f.mended.damaged, 2);
    snprintf(path, sizeof path, "sessions/.%s.damaged-5", f.key); /* from a start that was killed */
    put_file(path, "x", 1);
    assert_int_equal(count_files_with(f.key), 3);
    assert_int_equal(gw_session_delete(f.sessions, f.key, on_done, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.error.code, FM_OK);
    assert_int_equal(count_files_with(f.key), 0);
    assert_int_equal(count_files_with(first), 2);
}

static void limit_files(rlim_t bytes) {
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk(void **state) {
    (void)state;
    create("a");
    say("user", "one");
    append_to_file("{\"seq\":7,\"time\":5,\"type\":\"run_started\",\"runId\":\"r\"}\n");
    stop();
    limit_files(20);
    start(); /* the open run can't be closed: the session can be read, but accepts nothing */
    assert_int_equal(f.mended.unusable, 1);
    assert_non_null(strstr(view(GW_VIEW_MESSAGES), "one"));
    assert_null(gw_session_begin(f.sessions, f.key, GW_RECORD_MESSAGE, NULL, &error));
    assert_int_equal(error.code, FM_UNAVAILABLE);
    char key[GW_SESSION_KEY_LEN + 1];
    memcpy(key, f.key, sizeof key);
    create("b");
    assert_int_equal(f.error.code, FM_UNAVAILABLE);
    assert_string_equal(titles(), "one;");
    assert_int_equal(gw_session_attach(f.sessions, key, "12345678901234567890123", 23, on_put, NULL, &error), FM_OK);
    wait_for_it();
    assert_int_equal(f.error.code, FM_UNAVAILABLE);
    limit_files(RLIM_INFINITY);
    restart();
    assert_int_equal(f.mended.runs, 1);
    say("user", "two");
    assert_int_equal(gw_session_find(f.sessions, f.key)->facts.messages, 2);
}

static void others_files_are_left_alone(void **state) {
    (void)state;
    put_file("sessions/notes.txt", "x", 1);
    put_file("sessions/0123456789abcdef0123456789abcdeX.jsonl", "x", 1);
    put_file("blobs/readme", "x", 1);
    put_file("blobs/0123456789abcdef0123456789abcdef-0123456789abcdef", "x", 1); /* from a deleted session */
    put_file("sessions/0123456789abcdef0123456789abcdef.jsonl", "x", 1);
    assert_int_equal(chmod(in_folder("sessions/0123456789abcdef0123456789abcdef.jsonl"), 0644), 0);
    restart();
    assert_int_equal(f.mended.sessions, 0);
    assert_int_equal(f.mended.unusable, 1);
    assert_int_equal(access(in_folder("sessions/notes.txt"), F_OK), 0);
    assert_int_equal(access(in_folder("sessions/0123456789abcdef0123456789abcdeX.jsonl"), F_OK), 0);
    assert_int_equal(access(in_folder("sessions/0123456789abcdef0123456789abcdef.jsonl"), F_OK), 0);
    assert_int_equal(access(in_folder("blobs/readme"), F_OK), 0);
    assert_int_equal(access(in_folder("blobs/0123456789abcdef0123456789abcdef-0123456789abcdef"), F_OK), 0);
    unlink(in_folder("sessions/0123456789abcdef0123456789abcdef.jsonl"));
    restart();
    assert_int_equal(access(in_folder("blobs/0123456789abcdef0123456789abcdef-0123456789abcdef"), F_OK), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_said_survives),
        TEST(the_list_is_sorted),
        TEST(rename_and_delete),
        TEST(a_damaged_attachment),
        TEST(a_delete_takes_the_damaged_copy_too),
        TEST(records_are_checked),
        TEST(a_torn_line_is_cut),
        TEST(open_runs_are_closed),
        TEST(a_damaged_file_is_kept),
        TEST(a_file_without_a_record_is_gone),
        TEST(a_full_disk),
        TEST(others_files_are_left_alone),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
