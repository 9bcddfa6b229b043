/* The list of models, from a folder that the test makes under TMPDIR. */
#include "front/engines/models.h"
#include "wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[PATH_MAX];
static struct fm_options options;
static struct fm_engine_files engine;

static const char *at(const char *name) {
    static char paths[4][PATH_MAX + 512]; /* four buffers, so that several results are valid at the same time */
    static unsigned next;
    char *path = paths[next++ % COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t len) {
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void gguf(const char *name) {
    write_file(name, BYTES("GGUF\x03\0\0\0 and what follows"));
}

static int make_folder(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.200s/fm-models-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    options = (struct fm_options){0};
    engine = (struct fm_engine_files){.name = "llama", .dir = root, .descriptor = {.reads_files = true}};
    if (!mkdtemp(root)) {
        return -1;
    }
    snprintf(options.models_dir, sizeof options.models_dir, "%s", root);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *stream = opendir(root);
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            remove(at(entry->d_name));
        }
    }
    closedir(stream);
    return rmdir(root);
}

/* Checks the list of ids in its order, with "*" after the default id. */
static void expect_list(const char *expected) {
    struct fm_model_list list;
    struct fm_error error;
    struct transcript log = {.len = 0};
    assert_int_equal(fm_models_list(&options, &engine, &list, &error), FM_OK);
    for (size_t i = 0; i < list.count; i++) {
        note(&log, "%s%s ", list.models[i].id, list.models[i].is_default ? "*" : "");
    }
    fm_model_list_free(&list);
    assert_null(list.models);
    assert_string_equal(log.text, expected);
}

static void expect_found(const char *name, const char *id, const char *path, bool is_default) {
    struct fm_model model;
    struct fm_error error;
    if (fm_models_find(&options, &engine, name, &model, &error) != FM_OK) {
        fail_msg("%s: %s", name ? name : "the default", error.detail);
    }
    assert_string_equal(model.id, id);
    assert_string_equal(model.path, path);
    assert_int_equal(model.is_default, is_default);
    fm_model_free(&model);
    assert_null(model.id);
}

/* The message must contain `names`. */
static void expect_refused(const char *name, enum fm_code code, const char *names, const char *why) {
    struct fm_model model;
    struct fm_error error;
    assert_int_equal(fm_models_find(&options, &engine, name, &model, &error), code);
    assert_int_equal(error.code, code);
    if (!strstr(error.detail, names) || !strstr(error.detail, why)) {
        fail_msg("expected \"%s\" and \"%s\" in: %s", names, why, error.detail);
    }
}

static void nothing_there(void **state) {
    (void)state;
    expect_list("");
    expect_refused(NULL, FM_UNAVAILABLE, root, "no model file (*.gguf)");
    expect_refused(NULL, FM_UNAVAILABLE, "put one there, or", "the option model (--model)");
    /* this is the error for any name, so that a fallback may answer */
    expect_refused("x", FM_UNAVAILABLE, root, "no model file (*.gguf)");
    snprintf(options.models_dir, sizeof options.models_dir, "%s", at("absent"));
    expect_list("");
    expect_refused(NULL, FM_UNAVAILABLE, at("absent"), "put one there (the folder does not exist)");
}

/* A model in several files is one model; its first file is the one that names it. */
static void a_split_model(void **state) {
    (void)state;
    struct fm_model model;
    struct fm_error error;
    gguf("b-00001-of-00003.gguf");
    gguf("b-00002-of-00003.gguf");
    write_file("b-00003-of-00003.gguf", BYTES("GGUF"));
    gguf("a-00002-of-00002.gguf"); /* its first file is missing */
    gguf("c-0001-of-0002.gguf");   /* not a number that any splitter writes */
    gguf("-00001-of-00002.gguf");
    expect_list("-00001-of-00002* b c-0001-of-0002 ");
    expect_found("b", "b", at("b-00001-of-00003.gguf"), false);
    options.model = at("b-00001-of-00003.gguf");
    expect_list("b* -00001-of-00002 c-0001-of-0002 ");
    assert_int_equal(fm_models_find(&options, &engine, NULL, &model, &error), FM_OK);
    assert_int_equal(model.size, 2 * strlen("GGUF\x03___ and what follows") + strlen("GGUF"));
    fm_model_free(&model);
}

static void a_name_that_is_none(void **state) {
    (void)state;
    gguf("a.gguf");
    static const char *const names[] = {"b", "a.gguf", "A", "Default", "a ", "../a", "./a", "a\n"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct fm_model model;
        struct fm_error error;
        assert_int_equal(fm_models_find(&options, &engine, names[i], &model, &error), FM_NOT_FOUND);
        assert_string_equal(error.reason, "model_not_found");
        assert_string_equal(error.param, "model");
        assert_non_null(strstr(error.detail, names[i]));
    }
    char longer[400] = "a";
    for (size_t len = 1; len < 301; len += 2) {
        memcpy(longer + len, "\xC3\xA9", 3);
    }
    expect_refused(longer, FM_NOT_FOUND, "\xA9' ", "does not exist"); /* cut between characters */
    options.model = longer;
    expect_refused(NULL, FM_UNAVAILABLE, "\xA9 in the folder", "no model");
    options.model = NULL;
    expect_refused(at("a.gguf"), FM_NOT_FOUND, "a.gguf", "does not exist"); /* requests can't open paths */
}

static void names_of_the_default(void **state) {
    (void)state;
    static const char *const names[] = {NULL, "", "default", "local", "b"};
    gguf("b.gguf");
    gguf("c.gguf");
    for (size_t i = 0; i < COUNT(names); i++) {
        expect_found(names[i], "b", at("b.gguf"), true);
    }
    gguf("local.gguf"); /* a model with that name wins */
    expect_found("local", "local", at("local.gguf"), false);
    expect_found("default", "b", at("b.gguf"), true);
}

static void aliases(void **state) {
    (void)state;
    gguf("b.gguf");
    gguf("c.gguf");
    options.aliases = "gpt-4o=default,small=c,b=c,gone=d,again=small";
    expect_found("gpt-4o", "b", at("b.gguf"), true);
    expect_found("small", "c", at("c.gguf"), false);
    expect_found("b", "b", at("b.gguf"), true); /* the real name of a model wins */
    expect_refused("gone", FM_NOT_FOUND, "the alias 'gone' stands for the model 'd', which", "change the option aliases");
    expect_refused("again", FM_NOT_FOUND, "'again' stands for the model 'small'", "exist"); /* no alias of an alias */
    expect_refused("x", FM_NOT_FOUND, "the model 'x' does not exist", "to use another name");
    options.aliases = "*=c";
    expect_found("x", "c", at("c.gguf"), false);
    expect_found("default", "b", at("b.gguf"), true);
    expect_found(NULL, "b", at("b.gguf"), true);
}

static void what_there_is_is_told(void **state) {
    (void)state;
    gguf("b.gguf");
    expect_refused("x", FM_NOT_FOUND, "'x'", "does not exist; there is b; ");
    expect_refused("x", FM_NOT_FOUND, "'x'", "the option aliases (--aliases)");
    gguf("c.gguf");
    expect_refused("x", FM_NOT_FOUND, "'x'", "does not exist; there is b and c");
    gguf("d.gguf");
    expect_refused("x", FM_NOT_FOUND, "'x'", "does not exist; there is b, c and d");
    for (int i = 0; i < 20; i++) {
        char name[64];
        snprintf(name, sizeof name, "e-model-with-a-rather-long-name-%02d.gguf", i);
        gguf(name);
    }
    expect_refused("x", FM_NOT_FOUND, "there is b, c, d, e-model-with-a-rather-long-name-00,", " ...");
}

static void the_first_is_the_default(void **state) {
    (void)state;
    gguf("b.gguf");
    gguf("a.1-Q4_0.gguf");
    gguf("c.gguf");
    gguf(".hidden.gguf");
    gguf(".gguf");
    gguf("d.ggu");
    gguf("e.gguf.part");
    gguf("F.GGUF");
    expect_list("a.1-Q4_0* b c ");
    expect_found(NULL, "a.1-Q4_0", at("a.1-Q4_0.gguf"), true);
    expect_found("b", "b", at("b.gguf"), false);
    expect_refused(".hidden", FM_NOT_FOUND, ".hidden", "does not exist");
}

static void named_by_id(void **state) {
    (void)state;
    gguf("a.gguf");
    gguf("b.gguf");
    gguf("c.gguf");
    options.model = "b";
    expect_list("b* a c ");
    expect_found(NULL, "b", at("b.gguf"), true);
    expect_found("a", "a", at("a.gguf"), false);
    options.model = "gone";
    expect_list("a b c "); /* the other models do not replace the missing default */
    expect_refused(NULL, FM_UNAVAILABLE, "gone", "there is no model");
    expect_refused(NULL, FM_UNAVAILABLE, root, "there is no model");
    expect_refused(NULL, FM_UNAVAILABLE, "; there is a, b and c; ", "the option model (--model)");
    expect_found("a", "a", at("a.gguf"), false);
}

static void named_by_path(void **state) {
    (void)state;
    char path[PATH_MAX + 512];
    snprintf(path, sizeof path, "%s", at("z.gguf"));
    gguf("z.gguf");
    gguf("noext");
    snprintf(options.models_dir, sizeof options.models_dir, "%s", at("sub"));
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    gguf("sub/a.gguf");
    gguf("sub/z.gguf");

    options.model = path;
    expect_list("z* a "); /* the named file wins over a file with the same id in the folder */
    expect_found(NULL, "z", path, true);
    expect_found("z", "z", path, true);

    snprintf(path, sizeof path, "%s", at("noext"));
    expect_list("noext* a z ");
    expect_found(NULL, "noext", path, true);

    gguf(".gguf");
    snprintf(path, sizeof path, "%s", at(".gguf"));
    expect_list(".gguf* a z "); /* an id is never empty */

    snprintf(path, sizeof path, "%s", at("missing.gguf"));
    expect_list("missing* a z ");
    expect_refused(NULL, FM_UNAVAILABLE, path, "No such file");
    expect_refused("missing", FM_UNAVAILABLE, path, "No such file");
    expect_refused(NULL, FM_UNAVAILABLE, path, "name another file with the option model (--model): ");
    expect_found("a", "a", at("sub/a.gguf"), false);

    remove(at("sub/a.gguf"));
    remove(at("sub/z.gguf"));
}

static void files_that_are_no_models(void **state) {
    (void)state;
    static const struct {
        const char *id;
        const char *bytes;
        size_t len;
        const char *why;
    } rows[] = {
        {"empty", BYTES(""), "is not a GGUF file"},
        {"short", BYTES("GGU"), "is not a GGUF file"},
        {"text", BYTES("hello, world"), "is not a GGUF file"},
        {"reversed", BYTES("FUGG\x03\0\0\0"), "is not a GGUF file"},
        {"lower", BYTES("gguf\x03\0\0\0"), "is not a GGUF file"},
        {"pointer", BYTES("version https://git-lfs.github.com/spec/v1\n"), "is not a GGUF file"},
    };
    char name[64];
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(name, sizeof name, "%s.gguf", rows[i].id);
        write_file(name, rows[i].bytes, rows[i].len);
        expect_refused(rows[i].id, FM_UNAVAILABLE, at(name), rows[i].why);
    }
    expect_refused(NULL, FM_UNAVAILABLE, at("empty.gguf"), "is not a GGUF file");
}

/* Things that are not regular files. An ordinary open() of a FIFO without a writer would block. */
static void things_that_are_no_files(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("folder.gguf"), 0700), 0);
    assert_int_equal(mkfifo(at("fifo.gguf"), 0600), 0);
    assert_int_equal(symlink("nowhere", at("dangling.gguf")), 0);
    assert_int_equal(symlink("/dev/zero", at("device.gguf")), 0);
    assert_int_equal(symlink("loop.gguf", at("loop.gguf")), 0);
    alarm(20);
    expect_list("");
    static const char *const names[] = {"folder", "fifo", "device", "dangling", "loop"};
    static const char *const why[] = {"is not a regular file", "is not a regular file", "is not a regular file",
                                      "No such file", "can't open"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char file[32];
        char path[PATH_MAX + 512];
        snprintf(file, sizeof file, "%s.gguf", names[i]);
        snprintf(path, sizeof path, "%s", at(file));
        options.model = NULL;
        expect_refused(names[i], FM_UNAVAILABLE, root, "no model file (*.gguf)");
        options.model = path; /* --model names the file, so the error says what is wrong with it */
        expect_refused(NULL, FM_UNAVAILABLE, path, why[i]);
    }
    alarm(0);
}

static void unreadable(void **state) {
    (void)state;
    if (geteuid() == 0) {
        skip(); /* root can read everything */
    }
    gguf("secret.gguf");
    assert_int_equal(chmod(at("secret.gguf"), 0), 0);
    expect_refused("secret", FM_UNAVAILABLE, at("secret.gguf"), "Permission denied");
}

/* A folder that can't be read is an error, not an empty folder; an absent folder counts as empty (nothing_there). */
static void folder_that_cant_be_read(void **state) {
    (void)state;
    char path[PATH_MAX + 512];
    gguf("a.gguf");
    snprintf(path, sizeof path, "%s", at("a.gguf"));
    snprintf(options.models_dir, sizeof options.models_dir, "%s", at("a.gguf"));
    expect_list("");
    expect_refused(NULL, FM_UNAVAILABLE, path, "is a file; name its folder with the option modelsDir");
    expect_refused("a", FM_UNAVAILABLE, path, "is a file; name its folder with the option modelsDir");
    options.model = path; /* a named model needs no folder */
    expect_found(NULL, "a", path, true);
    expect_refused("b", FM_UNAVAILABLE, path, "is a file; name its folder with the option modelsDir");
}

static void no_descriptor_left(void **state) {
    (void)state;
    struct rlimit before;
    char path[PATH_MAX + 512];
    gguf("a.gguf");
    snprintf(path, sizeof path, "%s", at("a.gguf"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_refused(NULL, FM_OVERLOADED, root, "Too many open files");
    expect_refused("a", FM_OVERLOADED, root, "Too many open files");
    options.model = path;
    expect_refused(NULL, FM_OVERLOADED, path, "Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_found(NULL, "a", path, true);
}

static void what_appears_or_goes_is_seen(void **state) {
    (void)state;
    gguf("b.gguf");
    expect_found(NULL, "b", at("b.gguf"), true);
    gguf("a.gguf");
    expect_found(NULL, "a", at("a.gguf"), true);
    remove(at("a.gguf"));
    remove(at("b.gguf"));
    expect_list("");
}

static void modification_time(void **state) {
    (void)state;
    gguf("a.gguf");
    struct timespec times[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000001}};
    assert_int_equal(utimensat(AT_FDCWD, at("a.gguf"), times, 0), 0);
    struct fm_model model;
    struct fm_error error;
    assert_int_equal(fm_models_find(&options, &engine, NULL, &model, &error), FM_OK);
    assert_int_equal(model.created, 1700000001);
    fm_model_free(&model);
}

static void expect_mmproj(const char *name, const char *mmproj) {
    struct fm_model model;
    struct fm_error error;
    assert_int_equal(fm_models_look_up(&options, &engine, name, &model, &error), FM_OK);
    if (mmproj) {
        assert_string_equal(model.mmproj, mmproj);
    } else {
        assert_null(model.mmproj);
    }
    fm_model_free(&model);
}

/* --mmproj belongs to the default model, whichever it is, and must be a projector. */
static void a_projector(void **state) {
    (void)state;
    gguf("a.gguf");
    gguf("b.gguf");
    expect_mmproj(NULL, NULL);
    options.mmproj = at("eyes");
    expect_refused(NULL, FM_UNAVAILABLE, at("eyes"),
                   "name another file with the option mmproj (--mmproj), or leave it out: ");
    expect_mmproj(NULL, options.mmproj);
    expect_mmproj("a", options.mmproj);
    expect_mmproj("b", NULL);
    expect_refused(NULL, FM_UNAVAILABLE, "eyes", "No such file");
    expect_found("b", "b", at("b.gguf"), false);
    write_file("eyes", BYTES("JPEG"));
    expect_refused(NULL, FM_UNAVAILABLE, "eyes", "GGUF");
    gguf("eyes");
    expect_found(NULL, "a", at("a.gguf"), true);
    options.model = "b";
    expect_mmproj("a", NULL);
    expect_mmproj("b", options.mmproj);
    options.model = "gone";
    expect_mmproj("a", NULL);
}

static void expect_draft(const char *name, const char *draft) {
    struct fm_model model;
    struct fm_error error;
    assert_int_equal(fm_models_look_up(&options, &engine, name, &model, &error), FM_OK);
    assert_true(draft ? model.draft && strcmp(model.draft, draft) == 0 : !model.draft);
    fm_model_free(&model);
}

/* --draft-model belongs to the default model, and must be a GGUF file. */
static void a_draft_model(void **state) {
    (void)state;
    gguf("a.gguf");
    gguf("b.gguf");
    expect_draft("a", NULL);
    options.draft_model = at("small");
    expect_draft(NULL, options.draft_model);
    expect_draft("b", NULL);
    expect_refused(NULL, FM_UNAVAILABLE, "--draft-model", "No such file");
    expect_found("b", "b", at("b.gguf"), false);
    write_file("small", BYTES("JPEG"));
    expect_refused(NULL, FM_UNAVAILABLE, "--draft-model", "GGUF");
    gguf("small");
    expect_found(NULL, "a", at("a.gguf"), true);
    options.model = "b";
    expect_draft("a", NULL);
    expect_draft("b", options.draft_model);
    remove(at("small"));
}

/* ---- headers ---- */

static struct {
    char bytes[512];
    size_t len;
} header;

static void put(const void *bytes, size_t len) {
    assert_true(header.len + len <= sizeof header.bytes);
    memcpy(header.bytes + header.len, bytes, len);
    header.len += len;
}

/* The lowest byte first, on every machine. */
static void put_number(uint64_t number, size_t size) {
    for (size_t i = 0; i < size; i++) {
        put(&(char){(char)(number >> 8 * i)}, 1);
    }
}

static void put_text(const char *text) {
    put_number(strlen(text), 8);
    put(text, strlen(text));
}

static void begin_header(unsigned version, uint64_t pairs) {
    header.len = 0;
    put("GGUF", 4);
    put_number(version, 4);
    put_number(0, 8);
    put_number(pairs, 8);
}

static void put_u32(const char *key, uint32_t number) {
    put_text(key);
    put_number(4, 4);
    put_number(number, 4);
}

static void put_string(const char *key, const char *text) {
    put_text(key);
    put_number(8, 4);
    put_text(text);
}

/* Arrays before the pairs that matter: one of texts, one of numbers. */
static void put_arrays(void) {
    put_text("general.tags");
    put_number(9, 4);
    put_number(8, 4);
    put_number(2, 8);
    put_text("a");
    put_text("");
    put_text("clip.vision.image_mean");
    put_number(9, 4);
    put_number(6, 4);
    put_number(3, 8);
    put("123456789012", 12);
}

static void write_header(const char *name) {
    write_file(name, header.bytes, header.len);
}

static void put_bert(const char *name) {
    begin_header(3, 2);
    put_string("general.architecture", "bert");
    put_u32("bert.pooling_type", 1);
    write_header(name);
}

static void the_default_answers(void **state) {
    (void)state;
    put_bert("b.gguf");
    put_bert("a.gguf");
    expect_list("a* b ");
    gguf("d.gguf");
    gguf("c.gguf");
    expect_list("c* a b d ");
    options.model = "b"; /* a request for a model that embeds still gets it */
    expect_list("b* a c d ");
}

static void text_model(const char *name, uint32_t width) {
    begin_header(3, 4);
    put_string("general.architecture", "llama");
    put_arrays();
    put_u32("llama.embedding_length", width);
    write_header(name);
}

static void projector(const char *name, uint32_t width) {
    begin_header(3, 5);
    put_string("general.architecture", "clip");
    put_u32("clip.vision.embedding_length", 9);
    put_arrays();
    put_u32("clip.vision.projection_dim", width);
    write_header(name);
}

static const char *real(const char *name) {
    static char path[PATH_MAX];
    assert_non_null(realpath(at(name), path));
    return path;
}

static void a_projector_is_no_model(void **state) {
    (void)state;
    char path[PATH_MAX + 512];
    projector("a-mmproj.gguf", 576);
    expect_list("");
    expect_refused(NULL, FM_UNAVAILABLE, root, "no model file");
    text_model("b.gguf", 576);
    expect_list("b* ");
    expect_refused("a-mmproj", FM_NOT_FOUND, "a-mmproj", "does not exist");
    options.model = "a-mmproj";
    expect_list("b ");
    expect_refused(NULL, FM_UNAVAILABLE, "a-mmproj", "is a projector");
    snprintf(path, sizeof path, "%s", at("a-mmproj.gguf"));
    options.model = path;
    expect_list("b ");
    expect_refused(NULL, FM_UNAVAILABLE, path, "--mmproj");
    /* this is no folder, but the other fault is reported */
    snprintf(options.models_dir, sizeof options.models_dir, "%s", at("b.gguf"));
    expect_refused(NULL, FM_UNAVAILABLE, path, "--mmproj");
}

static void a_projector_is_found(void **state) {
    (void)state;
    text_model("a.gguf", 576);
    text_model("b.gguf", 960);
    projector("mmproj-x.gguf", 576);
    expect_mmproj("a", real("mmproj-x.gguf"));
    expect_mmproj("b", NULL);
    expect_found("a", "a", at("a.gguf"), true);
    write_file("mmproj-x.gguf", BYTES("gone"));
    expect_mmproj("a", NULL);
    projector("mmproj-x.gguf", 0); /* the file does not name its kind */
    expect_mmproj("a", NULL);
    begin_header(3, 3);
    put_string("general.architecture", "clip");
    put_u32("clip.has_vision_encoder", 0);
    put_u32("clip.vision.projection_dim", 576);
    write_header("mmproj-x.gguf");
    expect_mmproj("a", NULL); /* the projector is for sound */
    projector("mmproj-x.gguf", 576);
    begin_header(3, 3);
    put_string("general.architecture", "bert");
    put_u32("bert.pooling_type", 1);
    put_u32("bert.embedding_length", 576);
    write_header("c.gguf");
    expect_mmproj("c", NULL); /* this model embeds */
    options.mmproj = "eyes";
    expect_mmproj("a", "eyes"); /* --mmproj wins */
    expect_mmproj("b", NULL);
    options.model = "b";
    expect_mmproj("a", real("mmproj-x.gguf"));
    expect_mmproj("b", "eyes");
}

static void the_projector_of_several(void **state) {
    (void)state;
    text_model("Gemma-4b-Q4.gguf", 576);
    projector("mmproj-z.gguf", 576);
    projector("mmproj-y.gguf", 576);
    projector("mmproj-b.gguf", 576);
    expect_mmproj(NULL, real("mmproj-b.gguf")); /* the first one */
    projector("mmproj-gemma-4b-f16.gguf", 576);
    expect_mmproj(NULL, real("mmproj-gemma-4b-f16.gguf")); /* the one with a similar name */
    projector("mmproj-gemma-4b-q4.gguf", 960);
    expect_mmproj(NULL, real("mmproj-gemma-4b-f16.gguf")); /* the similar name whose projector fits */
}

static void the_folder_of_the_model_counts(void **state) {
    (void)state;
    char path[PATH_MAX + 512];
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    text_model("sub/z.gguf", 576);
    text_model("sub/other.gguf", 576);
    text_model("a.gguf", 576);
    projector("mmproj.gguf", 576);
    snprintf(path, sizeof path, "%s", at("sub/z.gguf"));
    options.model = path;
    expect_list("z* a "); /* other files beside it are not listed */
    expect_mmproj("z", NULL);
    expect_mmproj("a", real("mmproj.gguf"));
    projector("sub/eyes.gguf", 576);
    expect_mmproj("z", real("sub/eyes.gguf"));
    expect_mmproj("a", real("mmproj.gguf"));
    remove(at("mmproj.gguf"));
    expect_mmproj("a", NULL);
    snprintf(options.models_dir, sizeof options.models_dir, "%s", at("absent"));
    expect_mmproj("z", real("sub/eyes.gguf"));
    assert_int_equal(chdir(at("sub")), 0);
    options.model = "z.gguf";
    expect_mmproj(NULL, real("sub/eyes.gguf"));
    assert_int_equal(chdir("/"), 0);
    remove(at("sub/z.gguf"));
    remove(at("sub/other.gguf"));
    remove(at("sub/eyes.gguf"));
}

/* A header that is cut anywhere, or contains anything, has at worst an unknown kind. */
static void headers_that_are_none(void **state) {
    (void)state;
    struct fm_gguf_kind kind;
    projector("x.gguf", 576);
    for (size_t len = 0; len <= header.len; len++) {
        char *copy = malloc(len + 1); /* of exactly this size, so that a sanitizer notices a read beyond it */
        assert_non_null(copy);
        memcpy(copy + 1, header.bytes, len);
        fm_gguf_kind_parse(copy + 1, len, &kind);
        assert_int_equal(kind.tokens, len == header.len ? 576 : 0);
        free(copy);
    }
    for (size_t at = 0; at < header.len; at++) {
        char before = header.bytes[at];
        for (unsigned byte = 0; byte < 256; byte++) {
            header.bytes[at] = (char)byte;
            fm_gguf_kind_parse(header.bytes, header.len, &kind);
        }
        header.bytes[at] = before;
    }
    static const unsigned versions[] = {0, 1, 4, 3u << 24};
    for (size_t i = 0; i < COUNT(versions); i++) {
        begin_header(versions[i], 1);
        put_string("general.architecture", "clip");
        fm_gguf_kind_parse(header.bytes, header.len, &kind);
        assert_false(kind.projector);
    }
    begin_header(2, UINT64_MAX);
    put_string("general.architecture", "clip");
    put_text("x");
    put_number(9, 4);
    put_number(10, 4);
    put_number(UINT64_MAX / 8 + 2, 8); /* times 8, this wraps to 8 */
    put_number(0, 8);
    put_u32("clip.vision.projection_dim", 576);
    fm_gguf_kind_parse(header.bytes, header.len, &kind);
    assert_true(kind.projector);
    assert_int_equal(kind.tokens, 0);
}

/*
 * The memory is the file, and 2 bytes for each number in the keys and values of each token, in a context and in the
 * memory that answers share.
 */
static void what_a_model_takes(void **state) {
    (void)state;
    enum { SHARED = 64 << 20 };
    static const struct {
        const char *key;
        unsigned number;
        int64_t kv; /* bytes of the KV memory, with the keys of all earlier rows too */
    } rows[] = {
        {"llama.block_count", 30, 0},
        {"llama.embedding_length", 576, 0},
        {"llama.attention.head_count", 9, INT64_C(2) * 2 * 576 * 30 * 8192 + SHARED},
        {"llama.attention.head_count_kv", 3, INT64_C(2) * 2 * 192 * 30 * 8192 + SHARED},
        {"llama.context_length", 2048, INT64_C(2) * 2 * 192 * 30 * 2048 + SHARED},
        {"llama.attention.key_length", 32, INT64_C(2) * (32 + 64) * 3 * 30 * 2048 + SHARED},
        {"llama.attention.value_length", 32, INT64_C(2) * (32 + 32) * 3 * 30 * 2048 + SHARED},
    };
    static const int64_t short_context = INT64_C(2) * (32 + 32) * 3 * 30 * 100;
    struct fm_model model;
    struct fm_error error;
    for (size_t count = 1; count <= COUNT(rows); count++) {
        begin_header(3, count);
        for (size_t i = 0; i < count; i++) {
            put_u32(rows[i].key, rows[i].number);
        }
        write_header("a.gguf");
        assert_int_equal(fm_models_find(&options, &engine, "a", &model, &error), FM_OK);
        assert_int_equal(fm_model_estimate(&model), (int64_t)header.len + rows[count - 1].kv);
        fm_model_free(&model);
    }
    model = (struct fm_model){.kind = {.context = 100, .kv_bytes = 2 * (32 + 32) * 3 * 30}};
    /* in this case, the memory of eight slots' contexts */
    assert_int_equal(fm_model_estimate(&model), 8 * short_context);
    model.kind.embeds = true;
    assert_int_equal(fm_model_estimate(&model), short_context + 64 * 1024 * 1024);
    write_file("eyes.bin", BYTES("GGUF and 7 more")); /* a projector counts while it is used */
    options.mmproj = at("eyes.bin");
    assert_int_equal(fm_models_find(&options, &engine, "a", &model, &error), FM_OK);
    assert_int_equal(fm_model_estimate(&model), (int64_t)header.len + rows[COUNT(rows) - 1].kv + 15);
    fm_model_free(&model);
    options.draft_model = options.mmproj; /* so does a draft model */
    assert_int_equal(fm_models_find(&options, &engine, "a", &model, &error), FM_OK);
    assert_int_equal(fm_model_estimate(&model), (int64_t)header.len + rows[COUNT(rows) - 1].kv + 30);
    fm_model_free(&model);
    remove(at("eyes.bin"));
}

/* A vocabulary continues after the bytes that are read, and takes memory for each token that it announces. */
static void vocabulary(void **state) {
    (void)state;
    struct fm_model model = {.kind = {.context = 1}};
    begin_header(3, 2);
    put_text("tokenizer.ggml.tokens");
    put_number(9, 4);
    put_number(8, 4); /* type: strings */
    put_number(150000, 8);
    put_text("one of them");
    fm_gguf_kind_parse(header.bytes, header.len, &model.kind);
    assert_int_equal(model.kind.vocabulary, 150000);
    assert_int_equal(fm_model_estimate(&model), 150000 * 200);
}

/* Some models have keys and values only in some of their layers. */
static void layers_without_keys(void **state) {
    (void)state;
    static const unsigned by_layer[] = {0, 0, 3, 0, 0, 1};
    struct fm_gguf_kind kind;
    begin_header(3, 5);
    put_u32("a.block_count", COUNT(by_layer));
    put_u32("a.embedding_length", 512);
    put_u32("a.attention.head_count", 8);
    put_u32("a.attention.head_count_kv", 2);
    put_u32("a.full_attention_interval", 4);
    fm_gguf_kind_parse(header.bytes, header.len, &kind);
    assert_int_equal(kind.kv_bytes, 2 * (64 + 64) * 2 * 1);
    begin_header(3, 4);
    put_u32("a.block_count", COUNT(by_layer));
    put_u32("a.embedding_length", 512);
    put_u32("a.attention.head_count", 8);
    put_text("a.attention.head_count_kv");
    put_number(9, 4);
    put_number(5, 4); /* type: int32 */
    put_number(COUNT(by_layer), 8);
    for (size_t i = 0; i < COUNT(by_layer); i++) {
        put_number(by_layer[i], 4);
    }
    fm_gguf_kind_parse(header.bytes, header.len, &kind);
    assert_int_equal(kind.kv_bytes, 2 * (64 + 64) * 4);
    /* the array is cut, so all layers count as having all heads */
    fm_gguf_kind_parse(header.bytes, header.len - 1, &kind);
    assert_int_equal(kind.kv_bytes, 2 * (64 + 64) * 8 * COUNT(by_layer));
}

/* Another engine has one model with the engine's name, and opens the path itself. */
static void engine_without_files(void **state) {
    (void)state;
    gguf("a.gguf");
    engine.name = "fake";
    engine.descriptor.reads_files = false;
    struct fm_model model;
    struct fm_error error;
    expect_list("fake* ");
    assert_int_equal(fm_models_find(&options, &engine, NULL, &model, &error), FM_OK);
    assert_null(model.path);
    fm_model_free(&model);
    expect_refused("a", FM_NOT_FOUND, "'a'", "does not exist");
    options.model = "anything";
    expect_found("fake", "fake", "anything", true);
}

static void engine_program(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct fm_error error;
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, at("fm-engine-llama")));
    assert_non_null(strstr(error.detail, "No such file"));
    assert_non_null(strstr(error.detail, "; build or install it, or name its folder with the option engineDir (--engine-dir)"));
    write_file("fm-engine-lama", BYTES(""));
    write_file("fm-engine-other.json", BYTES("{}"));
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "; the folder has the engines lama: name one with the option engine (--engine), or "));
    assert_non_null(strstr(error.detail, "--engine-dir"));
    write_file("fm-engine-a-name-as-long-as-all-of-the-room-that-there-is-for-all-names", BYTES(""));
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "; build or install it"));
    write_file("fm-engine-llama", BYTES("#!/bin/sh\n"));
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "Permission denied"));
    assert_non_null(strstr(error.detail, "chmod +x"));
    assert_int_equal(chmod(at("fm-engine-llama"), 0700), 0);
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_OK);
    assert_string_equal(path, at("fm-engine-llama"));
    char longer[PATH_MAX] = "";
    memset(longer, 'x', sizeof longer - 1);
    engine.dir = longer;
    assert_int_equal(fm_engine_program(&engine, path, &error), FM_UNAVAILABLE);
}

int main(void) {
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(nothing_there),
        IN_A_FOLDER(a_split_model),
        IN_A_FOLDER(a_name_that_is_none),
        IN_A_FOLDER(names_of_the_default),
        IN_A_FOLDER(aliases),
        IN_A_FOLDER(what_there_is_is_told),
        IN_A_FOLDER(the_first_is_the_default),
        IN_A_FOLDER(the_default_answers),
        IN_A_FOLDER(named_by_id),
        IN_A_FOLDER(named_by_path),
        IN_A_FOLDER(files_that_are_no_models),
        IN_A_FOLDER(things_that_are_no_files),
        IN_A_FOLDER(unreadable),
        IN_A_FOLDER(folder_that_cant_be_read),
        IN_A_FOLDER(no_descriptor_left),
        IN_A_FOLDER(what_appears_or_goes_is_seen),
        IN_A_FOLDER(modification_time),
        IN_A_FOLDER(a_projector),
        IN_A_FOLDER(a_draft_model),
        IN_A_FOLDER(a_projector_is_no_model),
        IN_A_FOLDER(a_projector_is_found),
        IN_A_FOLDER(the_projector_of_several),
        IN_A_FOLDER(the_folder_of_the_model_counts),
        IN_A_FOLDER(headers_that_are_none),
        IN_A_FOLDER(what_a_model_takes),
        cmocka_unit_test(layers_without_keys),
        cmocka_unit_test(vocabulary),
        IN_A_FOLDER(engine_without_files),
        IN_A_FOLDER(engine_program),
    };
    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
