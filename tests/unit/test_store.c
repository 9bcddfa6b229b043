/* The store: reading back stored responses, making room for new ones, and files that are not a store. */
#include "front/store/store.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM (1 << 20)

static void set(struct fm_buf *buf, const char *text) {
    fm_buf_init(buf, 1u << 24);
    fm_buf_append_str(buf, text);
}

/* Stores a response `id` with the message `item`; its object has `padding` more bytes. */
static enum fm_code put(struct fm_store *store, const char *id, const char *previous, const char *item,
                        size_t padding) {
    struct fm_stored_response response = {0};
    struct fm_error error;
    char text[256];
    snprintf(response.id, sizeof response.id, "%s", id);
    snprintf(response.previous_id, sizeof response.previous_id, "%s", previous);
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"output\":[{\"id\":\"%s\"}],\"padding\":\"", id, item);
    set(&response.object, text);
    for (size_t i = 0; i < padding; i++) {
        fm_buf_append_char(&response.object, 'x');
    }
    fm_buf_append_str(&response.object, "\"}");
    snprintf(text, sizeof text, "[{\"id\":\"in_%s\"}]", item);
    set(&response.input, text);
    enum fm_code code = fm_store_put(store, &response, &error);
    fm_stored_response_free(&response);
    return code;
}

static bool has(struct fm_store *store, const char *id) {
    struct fm_stored_response response;
    struct fm_error error;
    enum fm_code code = fm_store_get(store, id, &response, &error);
    if (code == FM_OK) {
        fm_stored_response_free(&response);
    }
    assert_true(code == FM_OK || code == FM_NOT_FOUND);
    return code == FM_OK;
}

static struct fm_store *open_store(const char *file, int64_t room) {
    struct fm_store *store = fm_store_new(file, room);
    struct fm_error error;
    assert_non_null(store);
    if (fm_store_open(store, &error) != FM_OK) {
        fail_msg("%s", error.detail);
    }
    assert_int_equal(fm_store_trouble(store)->code, FM_OK);
    return store;
}

static void comes_back(void **state) {
    (void)state;
    struct fm_store *store = open_store(NULL, ROOM);
    struct fm_stored_response response;
    struct fm_error error;
    char id[FM_ID_SIZE];
    assert_int_equal(put(store, "resp_1", "", "msg_1", 0), FM_OK);
    assert_int_equal(put(store, "resp_2", "resp_1", "msg_2", 0), FM_OK);
    assert_int_equal(put(store, "resp_2", "", "msg_3", 0), FM_UNAVAILABLE); /* an id can be used only once */
    assert_int_equal(fm_store_get(store, "resp_2", &response, &error), FM_OK);
    assert_string_equal(response.id, "resp_2");
    assert_string_equal(response.previous_id, "resp_1");
    assert_memory_equal(response.input.data, "[{\"id\":\"in_msg_2\"}]", response.input.len);
    fm_stored_response_free(&response);
    assert_int_equal(fm_store_find_item(store, "msg_1", id, &error), FM_OK);
    assert_string_equal(id, "resp_1");
    assert_int_equal(fm_store_find_item(store, "in_msg_2", id, &error), FM_OK);
    assert_string_equal(id, "resp_2");
    assert_int_equal(fm_store_find_item(store, "msg_3", id, &error), FM_NOT_FOUND);
    assert_int_equal(fm_store_delete(store, "resp_1", &error), FM_OK);
    assert_int_equal(fm_store_delete(store, "resp_1", &error), FM_NOT_FOUND);
    assert_string_equal(error.reason, "response_not_found");
    assert_int_equal(fm_store_find_item(store, "msg_1", id, &error), FM_NOT_FOUND);
    assert_false(has(store, "resp_1"));
    fm_store_close(store);
}

static void the_last_of_two_with_an_item(void **state) {
    (void)state;
    struct fm_store *store = open_store(NULL, ROOM);
    struct fm_error error;
    char id[FM_ID_SIZE];
    assert_int_equal(put(store, "resp_1", "", "msg_1", 0), FM_OK);
    assert_int_equal(put(store, "resp_2", "", "msg_1", 0), FM_OK);
    assert_int_equal(fm_store_find_item(store, "msg_1", id, &error), FM_OK);
    assert_string_equal(id, "resp_2");
    fm_store_close(store);
}

static void what_was_not_used_makes_room(void **state) {
    (void)state;
    struct fm_store *store = open_store(NULL, ROOM);
    const size_t third = ROOM / 3 - 1000;
    assert_int_equal(put(store, "resp_1", "", "msg_1", third), FM_OK);
    assert_int_equal(put(store, "resp_2", "", "msg_2", third), FM_OK);
    assert_int_equal(put(store, "resp_3", "", "msg_3", third), FM_OK);
    assert_true(has(store, "resp_1")); /* a read counts as a use */
    assert_int_equal(put(store, "resp_4", "", "msg_4", third), FM_OK);
    assert_false(has(store, "resp_2"));
    assert_true(has(store, "resp_1") && has(store, "resp_3") && has(store, "resp_4"));
    assert_int_equal(put(store, "resp_5", "", "msg_5", 3 * third), FM_OK);
    assert_false(has(store, "resp_1") || has(store, "resp_3") || has(store, "resp_4"));
    assert_int_equal(put(store, "resp_6", "", "msg_6", ROOM), FM_UNAVAILABLE);
    assert_true(has(store, "resp_5"));
    fm_store_close(store);
}

/* Two stores share a file. Each counts what the other store removes. */
static void two_count_alike(void **state) {
    (void)state;
    char path[] = "/tmp/fm-store-XXXXXX";
    char file[64];
    char id[FM_ID_SIZE];
    unsigned there = 0;
    const size_t third = ROOM / 3 - 1000;
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/store", path);
    struct fm_store *stores[] = {open_store(file, ROOM), open_store(file, ROOM)};
    for (unsigned i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "resp_%u", i);
        assert_int_equal(put(stores[i % 2], id, "", "msg_1", third), FM_OK);
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "resp_%u", i);
        there += has(stores[0], id);
    }
    assert_int_equal(there, 3);
    fm_store_close(stores[0]);
    fm_store_close(stores[1]);
    unlink(file);
    assert_int_equal(rmdir(path), 0);
}

static void a_file_outlives_it(void **state) {
    (void)state;
    char path[] = "/tmp/fm-store-XXXXXX";
    struct stat info;
    assert_non_null(mkdtemp(path));
    char file[64];
    snprintf(file, sizeof file, "%s/store", path);
    mode_t before = umask(0);
    struct fm_store *store = open_store(file, ROOM);
    umask(before);
    assert_int_equal(put(store, "resp_1", "", "msg_1", 0), FM_OK);
    struct fm_store *other = open_store(file, ROOM);
    assert_true(has(other, "resp_1"));
    assert_int_equal(put(other, "resp_2", "", "msg_2", 0), FM_OK);
    fm_store_close(store);
    fm_store_close(other);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(chmod(file, 0644), 0);
    store = open_store(file, ROOM);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_true(has(store, "resp_1") && has(store, "resp_2"));
    fm_store_close(store);
    unlink(file);
    assert_int_equal(rmdir(path), 0); /* it was the only file in the folder */
}

static void make_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static const char a_folder[] = "folder";
static const char a_fifo[] = "fifo"; /* a FIFO also stands for devices, which any user may write */

/* `text` is the content of the file, or one of the names above. */
static void expect_refused(const char *text, const char *word) {
    char folder[] = "/tmp/fm-store-XXXXXX";
    char path[64];
    struct fm_store *store;
    struct fm_error error;
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    if (text == a_folder) {
        assert_int_equal(mkdir(path, 0755), 0);
    } else if (text == a_fifo) {
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(chmod(path, 0755), 0);
    } else {
        make_file(path, text);
    }
    store = fm_store_new(path, ROOM);
    assert_non_null(store);
    assert_int_equal(fm_store_open(store, &error), FM_UNAVAILABLE);
    assert_string_equal(fm_store_trouble(store)->detail, error.detail);
    fm_store_close(store);
    assert_non_null(strstr(error.detail, path));
    assert_non_null(strstr(error.detail, word));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0755);
    assert_int_equal(text == a_folder ? rmdir(path) : unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void another_file_stays_as_it_is(void **state) {
    (void)state;
    expect_refused("hello there, this is no database of any kind", "something else");
    expect_refused("x", "something else"); /* so short that SQLite treats it as empty */
    expect_refused(a_folder, "directory");
    expect_refused(a_fifo, "not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(the_last_of_two_with_an_item),
        cmocka_unit_test(what_was_not_used_makes_room),
        cmocka_unit_test(two_count_alike),
        cmocka_unit_test(a_file_outlives_it),
        cmocka_unit_test(another_file_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
