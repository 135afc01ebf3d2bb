/* Parts of a build without side effects: job, environments, manifest, Containerfile,
 * log. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json/scan.h"
#include "supervisor/versions/build_environment.h"
#include "supervisor/versions/build_output.h"
#include "supervisor/versions/containerfile.h"
#include "supervisor/versions/image_needs.h"
#include "supervisor/versions/manifest.h"

/* --- the job
 * --------------------------------------------------------------------------- */

static const char job_text[] =
    "{\"deployment\":{\"id\":\"deployment_abc\",\"shortCode\":\"abcdefgh\",\"version\":"
    "\"20260102.3\",\"contentHash\":\"cafe\",\"runtime\":\"node-22\"},"
    "\"environment\":{\"id\":\"env_1\",\"type\":\"PREVIEW\",\"slug\":\"preview\","
    "\"branch\":"
    "\"feat/x\"},\"project\":{\"id\":\"project_1\",\"ref\":\"proj_ref\"},"
    "\"organization\":{\"id\":\"org_1\"},\"archive\":{\"bytes\":42,\"sha256\":"
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"},"
    "\"buildEnvVars\":{\"TOKEN\":\"a b\",\"PATH\":\"/evil\",\"A=B\":\"x\",\"\":\"y\"},"
    "\"key\":\"tr_preview_key\",\"apiUrl\":\"http://127.0.0.1:3030\",\"deadlineMs\":480000,"
    "\"attempt\":2}";

static void a_job_is_read(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct build_job job;
    if (build_job_read(slice_of(job_text), &job, &why))
        fail_msg("%s", why.text);
    assert_string_equal(job.deployment, "deployment_abc");
    assert_string_equal(job.version, "20260102.3");
    assert_string_equal(job.project_ref, "proj_ref");
    assert_string_equal(job.branch->data, "feat/x");
    assert_string_equal(job.key->data, "tr_preview_key");
    assert_int_equal(job.archive_bytes, 42);
    assert_int_equal(job.deadline_ms, 480000);
    assert_int_equal(job.attempt, 2);
    build_job_finish(&job);
}

/* Replaces one member of the job by another text. */
static void assert_no_job(const char *what, const char *instead, const char *reason)
{
    struct failure why = { 0 };
    struct build_job job;
    struct buf text = { 0 };
    const char *at = strstr(job_text, what);
    assert_non_null(at);
    buf_add(&text, (struct slice){ job_text, (size_t)(at - job_text) });
    buf_add_text(&text, instead);
    buf_add_text(&text, at + strlen(what));
    assert_true(scan_is_json(buf_slice(&text)));
    assert_int_equal(build_job_read(buf_slice(&text), &job, &why), ERR_INVALID);
    assert_string_equal(why.text, reason);
    build_job_finish(&job);
    buf_finish(&text);
}

static void invalid_job_is_rejected(void **state)
{
    (void)state;
    assert_no_job("deployment_abc", "../../etc", "deployment missing in the job");
    assert_no_job("20260102.3", "20260102.3/x", "version missing in the job");
    assert_no_job("proj_ref", "proj ref", "environment or project missing in the job");
    assert_no_job("0123456789abcdef\"},", "0123456789abcdeX\"},",
                  "archive missing in the job");
    assert_no_job("\"attempt\"", "\"deadlineMs\":0,\"attempt\"",
                  "key, apiUrl or deadlineMs missing in the job");
    assert_no_job("\"a b\"", "7", "a value in buildEnvVars of the job is not a string");
    assert_no_job("{\"TOKEN\":\"a b\",\"PATH\":\"/evil\",\"A=B\":\"x\",\"\":\"y\"}", "[]",
                  "buildEnvVars of the job is not an object");
}

/* --- environments
 * ---------------------------------------------------------------------- */

static const char *variable(const struct child_environment *environment, const char *name)
{
    size_t len = strlen(name);
    const char *value = NULL;
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->entries[i], name, len) == 0 &&
            environment->entries[i][len] == '=') {
            assert_null(value);
            value = environment->entries[i] + len + 1;
        }
    return value;
}

static void assert_without_workspaces(const char *text, const char *expected)
{
    struct buf out = { 0 };
    assert_int_equal(package_without_workspaces(slice_of(text), &out), expected != NULL);
    assert_true(slice_is(buf_slice(&out), expected ? expected : ""));
    buf_finish(&out);
}

static void package_loses_only_its_workspaces(void **state)
{
    (void)state;
    assert_without_workspaces("{\"name\":\"a\",\"workspaces\":[\"packages/*\"],"
                              "\"dependencies\": {\"ms\":\"2.1.3\",\"workspaces\":\"1\"}}",
                              "{\"name\":\"a\",\"dependencies\":{\"ms\":\"2.1.3\","
                              "\"workspaces\":\"1\"}}");
    assert_without_workspaces("{\"workspaces\":{\"packages\":[]}}", "{}");
    assert_without_workspaces("{\"name\":\"workspaces\"}", NULL);
}

static void children_get_only_the_listed_variables(void **state)
{
    (void)state;
    static char *outer[] = { "PATH=/usr/bin",
                             "RUNCAST_ENCRYPTION_KEY=secret",
                             "HTTPS_PROXY=http://p",
                             "NODE_EXTRA_CA_CERTS=/ca.pem",
                             "HOME=/root",
                             "OTHER=1",
                             NULL };
    struct build_home home = { .directory = "/scratch",
                               .program = "/opt/node22/bin/node",
                               .outer = outer,
                               .passed = "HTTPS_PROXY, HOME,NONE" };
    struct child_environment install = { 0 }, index = { 0 };
    struct failure why = { 0 };
    struct build_job job;
    assert_int_equal(build_job_read(slice_of(job_text), &job, &why), OK);

    build_environment_install(&install, &home, &job);
    assert_string_equal(variable(&install, "PATH"), "/opt/node22/bin:/usr/bin");
    assert_string_equal(variable(&install, "HOME"), "/scratch");
    assert_string_equal(variable(&install, "TMPDIR"), "/scratch");
    assert_string_equal(variable(&install, "NODE_ENV"), "production");
    assert_string_equal(variable(&install, "HTTPS_PROXY"), "http://p");
    assert_string_equal(variable(&install, "NODE_EXTRA_CA_CERTS"), "/ca.pem");
    assert_string_equal(variable(&install, "TOKEN"), "a b");
    assert_int_equal(install.count, 9); /* with LANG and npm's switch against update
                                         * checks */

    build_environment_index(&index, &home, &job);
    assert_string_equal(variable(&index, "TRIGGER_SECRET_KEY"), "tr_preview_key");
    assert_string_equal(variable(&index, "TRIGGER_API_URL"), "http://127.0.0.1:3030");
    assert_string_equal(variable(&index, "TRIGGER_PROJECT_REF"), "proj_ref");
    assert_string_equal(variable(&index, "TRIGGER_PROJECT_ID"), "project_1");
    assert_string_equal(variable(&index, "TRIGGER_DEPLOYMENT_ID"), "deployment_abc");
    assert_string_equal(variable(&index, "TRIGGER_DEPLOYMENT_VERSION"), "20260102.3");
    assert_string_equal(variable(&index, "TRIGGER_CONTENT_HASH"), "cafe");
    assert_string_equal(variable(&index, "TRIGGER_PREVIEW_BRANCH"), "feat/x");
    assert_null(variable(&index, "TOKEN"));
    assert_null(variable(&index, "BUN_INSTALL_BIN"));
    assert_int_equal(index.count, 15);

    child_environment_finish(&install);
    child_environment_finish(&index);
    build_job_finish(&job);
}

static void bun_runtime_is_found_by_its_index(void **state)
{
    (void)state;
    static char *outer[] = { NULL };
    struct build_home home = {
        .directory = "/s", .program = "/opt/bun/bin/bun", .outer = outer, .passed = ""
    };
    struct child_environment index = { 0 };
    struct failure why = { 0 };
    struct build_job job;
    assert_int_equal(build_job_read(slice_of(job_text), &job, &why), OK);
    build_environment_index(&index, &home, &job);
    assert_string_equal(variable(&index, "BUN_INSTALL_BIN"), "/opt/bun/bin");
    child_environment_finish(&index);
    build_job_finish(&job);
}

/* --- build.json
 * ------------------------------------------------------------------------ */

#define ENTRIES "/app/node_modules/trigger.dev/dist/esm/entryPoints/managed-"

/* As trigger.dev 4.8.3 wrote it, with fewer sources. */
#define MANIFEST(more)                                                                     \
    "{\"build\":{},\"cliPackageVersion\":\"4.8.3\",\"config\":{\"dirs\":[\"./src\"],"      \
    "\"project\":\"/app/not-a-path\"},\"configPath\":\"/app/trigger.config.mjs\","         \
    "\"contentHash\":\"16436ba9\",\"files\":[{\"entry\":\"src/trigger/tasks.ts\",\"out\":" \
    "\"/app/src/trigger/tasks.mjs\"}],\"indexControllerEntryPoint\":\"" ENTRIES            \
    "index-controller.mjs\",\"indexWorkerEntryPoint\":\"" ENTRIES "index-worker.mjs\","    \
    "\"outputPath\":\"/app/\",\"runControllerEntryPoint\":\"" ENTRIES                      \
    "run-controller.mjs\",\"runWorkerEntryPoint\":\"" ENTRIES "run-worker.mjs\","          \
    "\"runtime\":\"node-22\",\"sources\":{\"/app/x\":{\"contents\":\"/app/x\"}}" more "}"

static void manifest_is_read_and_its_paths_moved(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct manifest manifest;
    struct buf moved = { 0 };
    struct slice text = SLICE(MANIFEST(""));
    if (manifest_read(text, &manifest, &why))
        fail_msg("%s", why.text);
    assert_string_equal(manifest.index_controller,
                        "node_modules/trigger.dev/dist/esm/entryPoints/"
                        "managed-index-controller.mjs");
    assert_string_equal(manifest.runtime, "node-22");
    assert_string_equal(manifest.content_hash, "16436ba9");
    assert_false(manifest_is_untested(&manifest));
    assert_int_equal(manifest.package_count, 0);
    manifest_finish(&manifest);

    manifest_move(text, "/v/\"q\"", &moved);
    buf_add_char(&moved, '\0');
    assert_true(scan_is_json(slice_of(moved.ptr)));
    assert_non_null(
        strstr(moved.ptr, "\"configPath\":\"/v/\\\"q\\\"/trigger.config.mjs\""));
    assert_non_null(strstr(moved.ptr, "\"outputPath\":\"/v/\\\"q\\\"/\""));
    assert_non_null(strstr(moved.ptr, "\"out\":\"/v/\\\"q\\\"/src/trigger/tasks.mjs\""));
    assert_non_null(strstr(moved.ptr, "\"entry\":\"src/trigger/tasks.ts\""));
    assert_non_null(strstr(moved.ptr, "{\"/app/x\":{\"contents\":\"/app/x\"}}"));
    assert_non_null(strstr(moved.ptr, "\"project\":\"/app/not-a-path\""));
    buf_finish(&moved);
}

static void assert_no_manifest(const char *text, const char *reason)
{
    struct failure why = { 0 };
    struct manifest manifest;
    assert_int_equal(manifest_read(slice_of(text), &manifest, &why), ERR_INVALID);
    assert_string_equal(why.text, reason);
    manifest_finish(&manifest);
}

static void invalid_manifest_is_rejected(void **state)
{
    (void)state;
    assert_no_manifest("[]", "build.json is not a JSON object");
    assert_no_manifest("{", "build.json is not a JSON object");
    assert_no_manifest("{}",
                       "build.json: indexControllerEntryPoint must be a path below /app");
    assert_no_manifest(MANIFEST(",\"runWorkerEntryPoint\":\"/app/../etc/x\""),
                       "build.json: runWorkerEntryPoint must be a path below /app");
    assert_no_manifest(MANIFEST(",\"loaderEntryPoint\":\"/apple/x\""),
                       "build.json: loaderEntryPoint must be a path below /app");
    assert_no_manifest(MANIFEST(",\"indexControllerEntryPoint\":\"/app\""),
                       "build.json: indexControllerEntryPoint is not the name of a file");
    assert_no_manifest(MANIFEST(",\"files\":[{\"out\":\"x\"}]"),
                       "build.json: a file must be below /app");
    assert_no_manifest(MANIFEST(",\"files\":7"), "build.json: files must be a list");
    assert_no_manifest(MANIFEST(",\"runtime\":7"), "build.json: runtime must be a string");
    assert_no_manifest(MANIFEST(",\"cliPackageVersion\":\"4.3.9\""),
                       "the bundle was made by trigger.dev 4.3.9; upgrade to 4.4 or newer");
    assert_no_manifest(MANIFEST(",\"image\":7"), "build.json: image must be an object");
    assert_no_manifest(MANIFEST(",\"image\":{\"pkgs\":[7]}"),
                       "build.json: pkgs must be names, at most 1000");
}

static void paths_of_an_index_are_moved(void **state)
{
    (void)state;
    struct buf out = { 0 };
    index_move(
        SLICE(" {\n \"configPath\": \"/v/d.new/c.mjs\", \"tasks\": [ {\"entryPoint\":"
              "\"/v/d.new/t.mjs\",\"n\":1e3} , \"/v/d.new\", \"/v/d.newer/x\" ],"
              "\"/v/d.new\":null, \"e\":{}, \"l\":[] }\n"),
        "/v/d.new", "/app", &out);
    buf_add_char(&out, '\0');
    assert_string_equal(out.ptr,
                        "{\"configPath\":\"/app/c.mjs\",\"tasks\":[{\"entryPoint\":"
                        "\"/app/t.mjs\",\"n\":1e3},\"/app\",\"/v/d.newer/x\"],"
                        "\"/v/d.new\":null,\"e\":{},\"l\":[]}");
    buf_finish(&out);
}

/* --- settings of an image
 * -------------------------------------------------------------- */

static void assert_needs(const char *text, const struct image_settings *settings,
                         const char *reason)
{
    struct failure why = { 0 };
    struct manifest manifest;
    if (manifest_read(slice_of(text), &manifest, &why))
        fail_msg("%s", why.text);
    enum err refused = image_needs_check(&manifest, settings, &why);
    assert_int_equal(refused, *reason ? ERR_RULE : OK);
    assert_string_equal(why.text, reason);
    manifest_finish(&manifest);
}

static void missing_image_packages_are_reported(void **state)
{
    (void)state;
    static const char packages[] = MANIFEST(",\"image\":{\"pkgs\":[\"ffmpeg\",\"curl\"]}");
    static const char base[] = MANIFEST(",\"image\":{\"base\":\"debian\"}");
    static const char steps[] = MANIFEST(",\"image\":{\"instructions\":[\"RUN x\"]}");
    struct image_settings none = { .packages = "" };
    struct image_settings all = { .packages = "curl, ffmpeg", .ignore_image = true };
    struct image_settings one = { .packages = "ffmpeg-extra curl" };
    assert_needs(MANIFEST(""), &none, "");
    assert_needs(packages, &none,
                 "this version needs the system packages ffmpeg,curl; install them on the "
                 "machine and list them in --deploy-packages");
    assert_needs(packages, &one,
                 "this version needs the system packages ffmpeg; install them on the "
                 "machine and list them in --deploy-packages");
    assert_needs(packages, &all, "");
    assert_needs(base, &none,
                 "this version needs a base image of its own, but versions execute without "
                 "images here; --deploy-ignore-image builds it without");
    assert_needs(steps, &none,
                 "this version needs steps of an image, but versions execute without "
                 "images here; --deploy-ignore-image builds it without");
    assert_needs(base, &all, "");
}

/* --- the Containerfile
 * ----------------------------------------------------------------- */

/* As trigger.dev 4.8.3 wrote it, except for the certificates in its first stage. */
#define NODE_BEGIN                                                                         \
    "# syntax=docker/dockerfile:1\n# check=skip=SecretsUsedInArgOrEnv\n"                   \
    "FROM triggerdotdev/node:22-bookworm@sha256:40c5 AS base\n\n"                          \
    "ENV DEBIAN_FRONTEND=noninteractive\n\nRUN mkdir -p /usr/local/share && \\\n"          \
    "  printf '%s\\n' \\\n    '-----BEGIN TRUSTED CERTIFICATE-----' \\\n    > /x.crt\n\n"  \
    "FROM triggerdotdev/node:22-bookworm-build@sha256:1 AS build\n\n"                      \
    "ENV DEBIAN_FRONTEND=noninteractive\n\nUSER node\nWORKDIR /app\n\nARG FOO\n\n"         \
    "ENV FOO=$FOO\n\nENV NODE_ENV=production\nENV NPM_CONFIG_UPDATE_NOTIFIER=false\n\n"    \
    "COPY --chown=node:node package.json ./\n"                                             \
    "RUN npm i --no-audit --no-fund --no-save --no-package-lock\n\n"                       \
    "# Now copy all the files\n# IMPORTANT: Do this after running npm install\n"           \
    "COPY --chown=node:node . .\n\n"
#define NODE_END                                                                           \
    "\n# IMPORTANT: Doing this again to fix an issue with prisma generate\n"               \
    "COPY --chown=node:node . .\n\n"                                                       \
    "# node_modules may not exist when there are no dependencies to install\n"             \
    "RUN mkdir -p node_modules\n\n"
#define REST                                                                               \
    "FROM scratch AS code\n\nCOPY --from=build --exclude=node_modules /app /app\n\n"       \
    "FROM build AS indexer\n\nRUN [ \"node\", \"/app/x.mjs\" ]\n"
#define BUN_BEGIN                                                                          \
    "FROM oven AS base\n\nFROM oven-build AS build\n\nUSER bun\nWORKDIR /app\n\n"          \
    "COPY --chown=bun:bun package.json ./\nRUN bun install --production --no-save\n\n"     \
    "# Now copy all the files\nCOPY --chown=bun:bun . .\n\n"

static void assert_commands(const char *text, size_t count, const char *const *commands)
{
    struct failure why = { 0 };
    struct containerfile file;
    if (containerfile_read(slice_of(text), &file, &why))
        fail_msg("%s", why.text);
    assert_int_equal(file.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(file.commands[i], commands[i]);
    containerfile_finish(&file);
}

static void commands_are_those_between_the_two_copies(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "echo one > generated.txt", "node -e 'console.log(\"two lines\")'   && echo three",
        "echo $FOO"
    };
    static const char text[] = NODE_BEGIN
        "RUN echo one > generated.txt\nRUN node -e 'console.log(\"two lines\")' \\\n"
        "# in between\n\n  && echo three\nRUN echo $FOO\n" NODE_END REST;
    assert_commands(text, 3, commands);
    assert_commands(NODE_BEGIN NODE_END REST, 0, NULL);
    assert_commands(BUN_BEGIN "RUN echo $FOO\n\nRUN mkdir -p node_modules\n\n" REST, 1,
                    commands + 2);
    assert_commands(BUN_BEGIN REST, 0, NULL);
}

static void containerfile_of_another_shape_is_rejected(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "FROM x AS base\n",
        NODE_BEGIN,
        NODE_BEGIN NODE_END,  /* the next stage is missing */
        NODE_BEGIN "\n" REST, /* the second copy is missing */
        NODE_BEGIN "USER root\n" NODE_END REST,
        NODE_BEGIN "RUN --mount=type=cache,target=/x y\n" NODE_END REST,
        NODE_BEGIN "RUN [ \"a\" ]\n" NODE_END REST,
        NODE_BEGIN "RUN <<EOF\necho\nEOF\n" NODE_END REST,
        NODE_BEGIN "RUN echo a\nb\n" NODE_END REST,
        NODE_BEGIN NODE_END "RUN echo late\n" REST,
        NODE_BEGIN NODE_END "RUN echo \\",
        "FROM x AS build\nCOPY --chown=node:node package.json ./\nRUN npm ci\n"
        "COPY --chown=node:node . .\n" NODE_END REST,
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct failure why = { 0 };
        struct containerfile file;
        if (containerfile_read(slice_of(others[i]), &file, &why) != ERR_INVALID)
            fail_msg("accepted: %s", others[i]);
        assert_non_null(strstr(why.text, "unknown CLI version"));
        containerfile_finish(&file);
    }
}

/* --- the log
 * --------------------------------------------------------------------------- */

static void assert_taken(struct build_output *output, const char *text)
{
    struct bytes *taken = build_output_take(output);
    if (text)
        assert_string_equal(taken->data, text);
    else
        assert_null(taken);
    bytes_unref(taken);
}

static void log_is_split_between_utf8_characters(void **state)
{
    (void)state;
    struct build_output output;
    struct buf much = { 0 };
    build_output_init(&output);
    assert_taken(&output, NULL);
    build_output_add(&output, SLICE("one\n"));
    build_output_add_error(&output, SLICE("tw\xc3\xb6 \xff\xc3(\n"));
    assert_taken(&output, "one\ntw\xc3\xb6 \?\?(\n");
    assert_taken(&output, NULL);
    assert_true(slice_is(build_output_errors(&output), "tw\xc3\xb6 \xff\xc3(\n"));
    build_output_forget_errors(&output);
    assert_int_equal(build_output_errors(&output).len, 0);

    /* A cut within a character moves to the beginning of the character. */
    for (size_t i = 0; i < OUTPUT_PIECE_MAX - 1; i++)
        buf_add_char(&much, 'x');
    buf_add_text(&much, "\xc3\xb6");
    build_output_add(&output, buf_slice(&much));
    struct bytes *first = build_output_take(&output);
    assert_int_equal(first->len, OUTPUT_PIECE_MAX - 1);
    bytes_unref(first);
    assert_taken(&output, "\xc3\xb6");

    for (int i = 0; i < 9; i++) /* more than is kept */
        build_output_add(&output, buf_slice(&much));
    for (int i = 0; i < 8; i++)
        bytes_unref(build_output_take(&output));
    struct bytes *last = build_output_take(&output);
    assert_non_null(strstr(last->data, "bytes of the log omitted]"));
    bytes_unref(last);
    assert_taken(&output, NULL);
    buf_finish(&much);
    build_output_finish(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read),
        cmocka_unit_test(invalid_job_is_rejected),
        cmocka_unit_test(package_loses_only_its_workspaces),
        cmocka_unit_test(children_get_only_the_listed_variables),
        cmocka_unit_test(bun_runtime_is_found_by_its_index),
        cmocka_unit_test(manifest_is_read_and_its_paths_moved),
        cmocka_unit_test(invalid_manifest_is_rejected),
        cmocka_unit_test(paths_of_an_index_are_moved),
        cmocka_unit_test(missing_image_packages_are_reported),
        cmocka_unit_test(commands_are_those_between_the_two_copies),
        cmocka_unit_test(containerfile_of_another_shape_is_rejected),
        cmocka_unit_test(log_is_split_between_utf8_characters),
    };
    return cmocka_run_group_tests_name("build parts", tests, NULL, NULL);
}
