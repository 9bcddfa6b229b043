/* The memory as a whole, with the test's own embedder: its vectors are counts of words, so that similarity is known. */
#include "loop.h"

#include "memory/memory.h"
#include "sessions/blobs.h"

#include <ctype.h>
#include <ftw.h>
#include <sqlite3.h>

#define DIMENSIONS_MAX 128

struct fixture {
    uv_loop_t loop;
    struct gw_memory *memory;
    const char *model;
    size_t dimensions;
    size_t too_long; /* texts above this length are too long for the model; 0: no limit */
    bool later;      /* the model's answers come later, from the loop */
    bool fails;      /* the model does not answer */
    bool keeps;      /* the model answers when the test wants */
    struct gw_embedding *kept;
    uv_timer_t timer;
    size_t calls;
    size_t texts;
    size_t for_search;
    bool done;
    struct fm_error error;
    size_t count;
    bool by_meaning;
    char paths[GW_SEARCH_LIMIT_MAX][64];
    char text[4096];
    bool by_words;
    bool by_vector;
};

static struct fixture f;
static struct fm_error error;

static const char key_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char key_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/* ---- the embedder ---- */

/* Words with the same meaning count as the same word. */
static unsigned meaning(const char *word, size_t len) {
    static const char *const same[][2] = {{"car", "automobile"}, {"dog", "hound"}, {"doctor", "physician"}};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < 2; j++) {
            if (strlen(same[i][j]) == len && memcmp(same[i][j], word, len) == 0) {
                return i;
            }
        }
    }
    unsigned hash = 7;
    for (size_t i = 0; i < len; i++) {
        hash = hash * 31 + (unsigned char)word[i];
    }
    return 3 + hash % (unsigned)(f.dimensions - 3);
}

static void embed_text(const char *text, size_t len, float *vector) {
    vector[0] = 0.01f;
    for (size_t i = 0; i < len;) {
        size_t word = 0;
        while (i + word < len && isalpha((unsigned char)text[i + word])) {
            word++;
        }
        if (word) {
            vector[meaning(text + i, word)] += 1;
        }
        i += word ? word : 1;
    }
}

static bool is_too_long(const struct gw_embedding *embedding) {
    for (size_t i = 0; i < embedding->count; i++) {
        if (f.too_long && embedding->lens[i] > f.too_long) {
            return true;
        }
    }
    return false;
}

static void answer(struct gw_embedding *embedding) {
    static float vectors[GW_EMBED_AT_ONCE * DIMENSIONS_MAX];
    struct fm_error failure;
    if (f.fails) {
        fm_fail(&failure, FM_UNAVAILABLE, "no model");
        gw_embedding_failed(embedding, &failure);
    } else if (is_too_long(embedding)) {
        fm_fail(&failure, FM_CONTEXT_OVERFLOW, "too long");
        gw_embedding_failed(embedding, &failure);
    } else {
        memset(vectors, 0, sizeof vectors);
        for (size_t i = 0; i < embedding->count; i++) {
            assert_int_equal(embedding->texts[i][embedding->lens[i]], 0);
            embed_text(embedding->texts[i], embedding->lens[i], vectors + i * f.dimensions);
        }
        f.texts += embedding->count;
        gw_embedding_done(embedding, vectors, f.dimensions);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct gw_embedding *kept = f.kept;
    (void)timer;
    f.kept = NULL;
    answer(kept);
}

static void embed(void *context, struct gw_embedding *embedding) {
    (void)context;
    f.calls++;
    f.for_search += embedding->for_search;
    if (f.keeps) {
        f.kept = embedding;
    } else if (f.later) {
        assert_null(f.kept);
        f.kept = embedding;
        uv_timer_start(&f.timer, on_timer, 0, 0);
    } else {
        answer(embedding);
    }
}

/* ---- the memory ---- */

static void start(void) {
    char database[256];
    char sessions[256];
    assert_int_equal(uv_loop_init(&f.loop), 0);
    uv_timer_init(&f.loop, &f.timer);
    snprintf(database, sizeof database, "%s", in_folder("memory.db"));
    snprintf(sessions, sizeof sessions, "%s", in_folder("sessions"));
    const struct gw_memory_options options = {
        .loop = &f.loop, .database = database, .folder = sessions, .model = f.model, .embedder = {.embed = embed}};
    assert_int_equal(gw_memory_open(&options, &f.memory, &error), FM_OK);
}

static void stop(void) {
    gw_memory_close(f.memory);
    uv_close((uv_handle_t *)&f.timer, NULL);
    end_loop(&f.loop);
}

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    f.model = "test/words";
    f.dimensions = 64;
    f.later = true;
    close(make_folder());
    assert_int_equal(mkdir(in_folder("sessions"), 0700), 0);
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
    return nftw(folder_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void on_done(void *context, const struct fm_error *failure) {
    (void)context;
    f.error = failure ? *failure : (struct fm_error){.code = FM_OK};
    f.done = true;
}

static void on_searched(void *context, const struct fm_error *failure, const struct gw_hit *hits, size_t count,
                        bool by_meaning) {
    f.count = count;
    f.by_meaning = by_meaning;
    for (size_t i = 0; i < count; i++) {
        snprintf(f.paths[i], sizeof f.paths[i], "%s", hits[i].path);
    }
    if (count) {
        snprintf(f.text, sizeof f.text, "%s", hits[0].text);
        f.by_words = hits[0].found.by_words;
        f.by_vector = hits[0].found.by_vector;
    }
    on_done(context, failure);
}

static enum fm_code wait_for_it(void) {
    run_until(&f.loop, &f.done);
    f.done = false;
    return f.error.code;
}

static enum fm_code sync_all(void) {
    assert_int_equal(gw_memory_sync(f.memory, on_done, NULL, &error), FM_OK);
    return wait_for_it();
}

static enum fm_code index_one(const char *key) {
    assert_int_equal(gw_memory_index(f.memory, key, on_done, NULL, &error), FM_OK);
    return wait_for_it();
}

static enum fm_code search(const char *question) {
    assert_int_equal(gw_memory_search(f.memory, question, 5, on_searched, NULL, &error), FM_OK);
    return wait_for_it();
}

static bool finds(const char *question, const char *key) {
    assert_int_equal(search(question), FM_OK);
    return f.count && strstr(f.paths[0], key);
}

/* Adds user messages to a transcript. */
static void say(const char *key, const char *text) {
    char path[64];
    char line[4096];
    static int seq;
    snprintf(path, sizeof path, "sessions/%s.jsonl", key);
    int fd = open(in_folder(path), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int len =
        snprintf(line, sizeof line,
                 "{\"seq\":%d,\"time\":1,\"type\":\"message\",\"role\":\"user\",\"content\":\"%s\"}\n", ++seq, text);
    assert_int_equal(write(fd, line, (size_t)len), len);
    close(fd);
}

static void remove_transcript(const char *key) {
    char path[64];
    snprintf(path, sizeof path, "sessions/%s.jsonl", key);
    unlink(in_folder(path));
}

/* A number from the database, over another connection. */
static int64_t number(const char *sql) {
    sqlite3 *sqlite;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(in_folder("memory.db"), &sqlite), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(sqlite);
    return value;
}

/* ---- tests ---- */

static void by_words_and_by_meaning(void **state) {
    (void)state;
    say(key_a, "My automobile is blue and stands in Turin.");
    say(key_b, "The recipe needs flour, eggs and sugar.");
    assert_int_equal(sync_all(), FM_OK);
    assert_true(finds("Turin", key_a));
    assert_true(f.by_words && f.by_vector && f.by_meaning);
    assert_string_equal(f.text, "user: My automobile is blue and stands in Turin.");
    assert_true(finds("eggs", key_b));
    assert_true(finds("car", key_a)); /* the text has none of the question's words */
    assert_false(f.by_words);
    assert_true(f.by_vector);
    assert_int_equal(f.for_search, 3);
}

/* Copies the next of the words that single spaces separate. False: there is no other word. */
static bool next_word(const char **at, char word[64]) {
    size_t len = strcspn(*at, " ");
    assert_true(len < 64);
    memcpy(word, *at, len);
    word[len] = '\0';
    *at += len + ((*at)[len] == ' ');
    return len > 0;
}

/* Words only: what a person who reads the text would type. */
static void words_of_any_language(void **state) {
    static const char *const texts[] = {"昨日、東京都庁の近くで黒猫を見ました。",
                                        "나는 서울에서 김치를 먹었다",
                                        "我们在上海的咖啡馆见面",
                                        "Я живу в Москве, улица Ленина",
                                        "मुझे हिन्दी पसंद है",
                                        "ฉันชอบกาแฟเย็น",
                                        "Caf\u00e9 M\u00fcller, 3. Stock"};
    static const char *const found[] = {"東京 猫 見ま", "서울 김치 김치를", "咖啡馆 上海 见",  "москве ЛЕНИНА улица",
                                        "हिन्दी पसंद",    "กาแฟ ชอบ",         "cafe muller CAFÉ"};
    static const char *const other = "京東 캐나다 海上 Ленинград हिन्दु mull";
    char keys[7][GW_SESSION_KEY_LEN + 1];
    char word[64];
    (void)state;
    f.fails = true;
    for (size_t i = 0; i < 7; i++) {
        memset(keys[i], 'a' + (int)i % 6, GW_SESSION_KEY_LEN);
        keys[i][0] = (char)('0' + (int)i);
        keys[i][GW_SESSION_KEY_LEN] = '\0';
        say(keys[i], texts[i]);
    }
    assert_int_equal(sync_all(), FM_UNAVAILABLE);
    for (size_t i = 0; i < 7; i++) {
        for (const char *at = found[i]; next_word(&at, word);) {
            if (!finds(word, keys[i])) {
                fail_msg("%s is not found", word);
            }
        }
    }
    for (const char *at = other; next_word(&at, word);) {
        assert_int_equal(search(word), FM_OK);
        if (f.count != 0) {
            fail_msg("%s is found in %s", word, f.text);
        }
    }
}

/* A memory whose words version 1 of the schema indexed as they were. */
static void words_of_an_old_file_are_indexed_anew(void **state) {
    static const char old[] =
        "DROP TRIGGER chunks_insert; DROP TRIGGER chunks_delete; DROP TABLE chunks_fts;"
        "CREATE VIRTUAL TABLE chunks_fts USING fts5(content, content='chunks', content_rowid='id',"
        " tokenize='porter unicode61');"
        "INSERT INTO chunks_fts(rowid, content) SELECT id, content FROM chunks;"
        "CREATE TRIGGER chunks_insert AFTER INSERT ON chunks BEGIN"
        " INSERT INTO chunks_fts(rowid, content) VALUES(new.id, new.content); END;"
        "CREATE TRIGGER chunks_delete AFTER DELETE ON chunks BEGIN"
        " INSERT INTO chunks_fts(chunks_fts, rowid, content) VALUES('delete', old.id, old.content); END;"
        "PRAGMA user_version=1";
    sqlite3 *sqlite;
    (void)state;
    say(key_a, "東京の天気");
    assert_int_equal(sync_all(), FM_OK);
    stop();
    assert_int_equal(sqlite3_open(in_folder("memory.db"), &sqlite), SQLITE_OK);
    assert_int_equal(sqlite3_exec(sqlite, old, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(sqlite);
    start();
    f.texts = 0;
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 0); /* the vectors are still there */
    assert_true(finds("天気", key_a));
    assert_true(f.by_words);
    say(key_a, "雨");
    assert_int_equal(index_one(key_a), FM_OK);
    assert_true(finds("雨", key_a));
    assert_int_equal(number("PRAGMA user_version"), 2);
}

static void what_is_known_is_not_embedded_again(void **state) {
    (void)state;
    say(key_a, "one dog");
    say(key_b, "two hounds");
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 2);
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 2);
    stop();
    start();
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 2);
    assert_true(finds("dog", key_a));
    say(key_a, "three cats");
    assert_int_equal(index_one(key_a), FM_OK);
    assert_int_equal(f.texts, 4); /* one text for the chunk that has grown, and one for the search */
    assert_true(finds("cats", key_a));
    assert_int_equal(number("SELECT count(*) FROM chunks"), 2);
    assert_int_equal(number("SELECT count(*) FROM embedding_cache"), 2);
    assert_int_equal(number("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'dog'"), 1);
}

static void what_is_forgotten_is_gone(void **state) {
    (void)state;
    say(key_a, "zebra one");
    say(key_b, "zebra two");
    assert_int_equal(sync_all(), FM_OK);
    remove_transcript(key_a);
    assert_int_equal(gw_memory_forget(f.memory, key_a, on_done, NULL, &error), FM_OK);
    assert_int_equal(wait_for_it(), FM_OK);
    assert_int_equal(search("zebra"), FM_OK);
    assert_int_equal(f.count, 1);
    assert_true(strstr(f.paths[0], key_b));
    remove_transcript(key_b);
    assert_int_equal(sync_all(), FM_OK); /* it notices the removal by itself */
    assert_int_equal(search("zebra"), FM_OK);
    assert_int_equal(f.count, 0);
    assert_int_equal(number("SELECT count(*) FROM files"), 0);
    assert_int_equal(number("SELECT count(*) FROM embedding_cache"), 0);
    assert_int_equal(number("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'zebra'"), 0);
}

/* Whether this file of the database contains the bytes anywhere. */
static bool is_in_file(const char *name, const char *text) {
    FILE *file = fopen(in_folder(name), "rb");
    char *bytes = malloc(1 << 22);
    size_t len = file ? fread(bytes, 1, 1 << 22, file) : 0;
    bool found = memmem(bytes, len, text, strlen(text));
    free(bytes);
    if (file) {
        fclose(file);
    }
    return found;
}

/* The text is neither in a table nor in the bytes of a free page or of the log. */
static void what_is_forgotten_is_in_no_file(void **state) {
    (void)state;
    say(key_a, "okapi one");
    say(key_b, "zebra two");
    assert_int_equal(sync_all(), FM_OK);
    assert_true(is_in_file("memory.db", "okapi") || is_in_file("memory.db-wal", "okapi"));
    remove_transcript(key_a);
    assert_int_equal(gw_memory_forget(f.memory, key_a, on_done, NULL, &error), FM_OK);
    assert_int_equal(wait_for_it(), FM_OK);
    assert_false(is_in_file("memory.db", "okapi"));
    assert_false(is_in_file("memory.db-wal", "okapi"));
    assert_true(finds("zebra", key_b));
}

static void a_nul_ends_no_message(void **state) {
    (void)state;
    say(key_a, "before it\\u0000gnu behind it");
    assert_int_equal(sync_all(), FM_OK);
    assert_true(finds("gnu", key_a));
    assert_true(f.by_words);
}

static void tables_are_those_of_the_document(void **state) {
    (void)state;
    say(key_a, "something");
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(
        number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'chunks_fts%' AND"
               " name NOT IN ('files', 'chunks', 'embedding_cache', 'embedding_model')"),
        0);
    assert_int_equal(number("SELECT path LIKE 'sessions/a%' AND length(hash) = 64 AND indexed_at > 0 FROM files"), 1);
    assert_int_equal(number("SELECT file_path LIKE 'sessions/a%' AND content = 'user: something' AND"
                            " length(embedding) = 256 FROM chunks"),
                     1);
    assert_int_equal(number("SELECT length(hash) = 64 AND length(embedding) = 256 AND created_at > 0 FROM"
                            " embedding_cache"),
                     1);
    assert_int_equal(number("SELECT name = 'test/words' AND dimensions = 64 FROM embedding_model"), 1);
    struct stat info;
    assert_int_equal(stat(in_folder("memory.db"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void another_model_begins_anew(void **state) {
    (void)state;
    say(key_a, "one dog");
    say(key_b, "two cars");
    assert_int_equal(sync_all(), FM_OK);
    stop();
    f.model = "test/others";
    f.dimensions = 32;
    start();
    f.texts = 0;
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 2);
    assert_true(finds("hound", key_a));
    assert_int_equal(number("SELECT count(*) FROM chunks WHERE length(embedding) = 128"), 2);
    assert_int_equal(number("SELECT dimensions FROM embedding_model"), 32);
}

static void no_model_keeps_what_is_there(void **state) {
    (void)state;
    say(key_a, "one dog");
    assert_int_equal(sync_all(), FM_OK);
    stop();
    f.model = "";
    f.fails = true;
    start();
    assert_int_equal(sync_all(), FM_OK); /* nothing has changed */
    assert_true(finds("dog", key_a));
    assert_false(f.by_meaning);
    stop();
    f.model = "test/words";
    f.fails = false;
    start();
    f.texts = 0;
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 0);
    assert_true(finds("hound", key_a));
}

/* The model has the same name but other vectors. Its first vector shows this. */
static void other_vectors_begin_anew(void **state) {
    (void)state;
    say(key_a, "one dog");
    say(key_b, "two cars");
    assert_int_equal(sync_all(), FM_OK);
    f.dimensions = 48;
    say(key_a, "three birds");
    assert_int_equal(index_one(key_a), FM_OK);
    assert_int_equal(sync_all(), FM_OK); /* ends after the new indexing that the change has started */
    assert_int_equal(number("SELECT count(*) FROM chunks WHERE length(embedding) = 192"), 2);
    assert_int_equal(number("SELECT count(*) FROM embedding_model"), 1);
    assert_true(finds("automobile", key_b) || finds("cars", key_b));
}

static void long_texts_are_halved(void **state) {
    char text[1800];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 9 == 8 ? ' ' : (char)('a' + i / 9 % 26);
    }
    text[sizeof text - 1] = '\0';
    f.too_long = 600;
    say(key_a, text);
    say(key_b, "short");
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(number("SELECT count(*) FROM chunks WHERE embedding IS NULL"), 0);
    assert_in_range(number("SELECT max(length(content)) FROM chunks"), 300, 600);
    assert_in_range(number("SELECT count(*) FROM chunks"), 5, 8);
    f.texts = 0;
    assert_int_equal(sync_all(), FM_OK);
    assert_int_equal(f.texts, 0);
    f.too_long = 10; /* even the shortest pieces are too long */
    say(key_b, "a few words more");
    assert_int_equal(index_one(key_b), FM_OK);
    f.too_long = 0;
    assert_int_equal(search("few words"), FM_OK); /* found by its words */
    assert_true(strstr(f.paths[0], key_b) || strstr(f.paths[1], key_b));
}

static void without_a_model_words_are_searched(void **state) {
    (void)state;
    f.fails = true;
    say(key_a, "the secret of the pyramid");
    say(key_b, "an automobile");
    assert_int_equal(sync_all(), FM_UNAVAILABLE); /* the result says that there is no model */
    assert_int_equal(f.calls, 1);                 /* and it does not try again for each text */
    assert_true(finds("pyramids", key_a));        /* found by its stem */
    assert_false(f.by_meaning);
    assert_int_equal(search("car"), FM_OK);
    assert_int_equal(f.count, 0);
    int64_t changes = number("SELECT sum(rowid) FROM files");
    stop();
    start(); /* nothing is stored again */
    assert_int_equal(sync_all(), FM_UNAVAILABLE);
    assert_int_equal(number("SELECT sum(rowid) FROM files"), changes);
    f.fails = false;
    assert_int_equal(sync_all(), FM_OK); /* chunks without vectors get them now */
    assert_true(finds("car", key_b));
    assert_int_equal(number("SELECT count(*) FROM chunks WHERE embedding IS NULL"), 0);
    assert_int_equal(number("SELECT count(*) FROM chunks"), 2);
}

static void answers_may_come_at_once(void **state) {
    char text[1500];
    (void)state;
    f.later = false;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 200; i++) {
        snprintf(text, 12, "number %d", i);
        text[strlen(text)] = ' ';
        say(key_a, text);
    }
    assert_int_equal(sync_all(), FM_OK);
    assert_in_range(f.texts, 150, 400);
    assert_true(finds("number", key_a));
}

static void a_broken_file_is_moved_aside(void **state) {
    (void)state;
    say(key_a, "one dog");
    assert_int_equal(sync_all(), FM_OK);
    stop();
    put_file("memory.db", "this is no database, but a text of some length", 46);
    start();
    assert_int_equal(search("dog"), FM_OK); /* the database is made again, and indexed in the background */
    assert_int_equal(sync_all(), FM_OK);
    assert_true(finds("dog", key_a));
    assert_int_equal(number("SELECT count(*) FROM files"), 1);
}

static void damage_in_use_is_mended(void **state) {
    (void)state;
    char text[1000];
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, "sentence %d about a dog and the number %d%d%d", i, i, i, i);
        say(key_a, text);
    }
    say(key_b, "two cars");
    assert_int_equal(sync_all(), FM_OK);
    stop();
    struct stat info;
    assert_int_equal(stat(in_folder("memory.db"), &info), 0);
    int fd = open(in_folder("memory.db"), O_WRONLY); /* everything but the first page, which has the tables' names */
    for (off_t at = 8192; at < info.st_size; at += 512) {
        char junk[512];
        memset(junk, 0xa5, sizeof junk);
        assert_int_equal(pwrite(fd, junk, sizeof junk, at), sizeof junk);
    }
    close(fd);
    start();
    for (int i = 0; i < 5 && !(search("dog") == FM_OK && f.count); i++) {
        sync_all(); /* the first call may only notice the damage */
    }
    assert_int_equal(sync_all(), FM_OK);
    assert_true(finds("dog", key_a));
    assert_true(finds("automobile", key_b) || finds("cars", key_b));
}

static void the_end_drops_what_waits(void **state) {
    (void)state;
    say(key_a, "one dog");
    f.keeps = true;
    assert_int_equal(gw_memory_index(f.memory, key_a, on_done, NULL, &error), FM_OK);
    assert_int_equal(gw_memory_index(f.memory, key_b, on_done, NULL, &error), FM_OK);
    while (!f.kept) {
        uv_run(&f.loop, UV_RUN_ONCE);
    }
    struct gw_embedding *kept = f.kept;
    gw_memory_close(f.memory);
    assert_true(f.done); /* the second call has ended */
    assert_int_equal(f.error.code, FM_CANCELLED);
    f.done = false;
    uv_close((uv_handle_t *)&f.timer, NULL);
    end_loop(&f.loop);
    answer(kept); /* the embedder answers late: then the first call ends, and the memory is freed */
    assert_true(f.done);
    assert_int_equal(f.error.code, FM_CANCELLED);
    start();
}

static void questions_are_checked(void **state) {
    char question[GW_QUESTION_MAX + 2];
    (void)state;
    memset(question, 'x', sizeof question);
    question[sizeof question - 1] = '\0';
    assert_int_equal(gw_memory_search(f.memory, question, 5, on_searched, NULL, &error), FM_INVALID_REQUEST);
    assert_int_equal(gw_memory_search(f.memory, "x", 0, on_searched, NULL, &error), FM_INVALID_REQUEST);
    assert_int_equal(gw_memory_index(f.memory, "../x", on_done, NULL, &error), FM_INVALID_REQUEST);
    assert_int_equal(search("\"; DROP TABLE chunks; --"), FM_OK);
    assert_int_equal(search("NEAR(\" AND * ^"), FM_OK);
    assert_int_equal(search(""), FM_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(by_words_and_by_meaning),
        TEST(words_of_any_language),
        TEST(words_of_an_old_file_are_indexed_anew),
        TEST(what_is_known_is_not_embedded_again),
        TEST(what_is_forgotten_is_gone),
        TEST(tables_are_those_of_the_document),
        TEST(a_nul_ends_no_message),
        TEST(what_is_forgotten_is_in_no_file),
        TEST(another_model_begins_anew),
        TEST(other_vectors_begin_anew),
        TEST(long_texts_are_halved),
        TEST(without_a_model_words_are_searched),
        TEST(answers_may_come_at_once),
        TEST(a_broken_file_is_moved_aside),
        TEST(damage_in_use_is_mended),
        TEST(the_end_drops_what_waits),
        TEST(questions_are_checked),
        TEST(no_model_keeps_what_is_there),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
