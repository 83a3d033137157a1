// SPDX-License-Identifier: Apache-2.0
// What the person reads when a recipe fails: the sentence, three lines of the recipe, what to try, the callers.
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/lua/script.h"

enum { LINES_AROUND = 1, LINE_BYTES_SHOWN = 160 };

typedef struct verdict {
    hr_status status;
    bool from_engine;            // s->raised is this error
    char text[SCRIPT_TEXT_MAX];  // as Lua has it, with "recipe.lua:12: " in front or without
    const char *sentence;        // the part of text behind the place
    const script_source *source; // NULL: the place is in no file that was read
    int line;
    char hint[SCRIPT_TEXT_MAX];
} verdict;

// ---- the text of an error object ----------------------------------------------------------------------------------

static int object_to_text(lua_State *L)
{
    if (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1)) {
        return 1;
    }
    lua_pushfstring(L, "the error is a %s, not a text", luaL_typename(L, 1));
    return 1;
}

// A __tostring is the recipe's own code: it runs under the same limits, and may fail.
static void copy_error_text(script *s, char text[SCRIPT_TEXT_MAX])
{
    lua_State *L = s->L;
    if (lua_type(L, -1) != LUA_TSTRING) {
        lua_pushcfunction(L, object_to_text);
        lua_insert(L, -2);
        if (lua_pcall(L, 1, 1, 0) != LUA_OK || lua_type(L, -1) != LUA_TSTRING) {
            (void)snprintf(text, SCRIPT_TEXT_MAX, "the error cannot be shown: its __tostring failed");
            return;
        }
    }
    (void)snprintf(text, SCRIPT_TEXT_MAX, "%s", lua_tostring(L, -1));
}

static void describe_memory(const script *s, char text[SCRIPT_TEXT_MAX])
{
    char limit[HR_BYTES_TEXT_MAX];
    if (!s->refused_memory) {
        (void)snprintf(text, SCRIPT_TEXT_MAX, "no host memory for the recipe");
        return;
    }
    (void)snprintf(text, SCRIPT_TEXT_MAX, "needed more than %s of memory for Lua",
                   hr_bytes_human(s->limits.memory_bytes, limit));
}

// ---- the place ----------------------------------------------------------------------------------------------------

// "recipe.lua:12: " in front of the text, as Lua abbreviates the name of `source`.
static bool read_place(const char *text, const script_source *source, int *line, const char **rest)
{
    char shown[LUA_IDSIZE];
    size_t length = strlen(source->name);
    const char *cut =
        length < LUA_IDSIZE ? source->name : source->name + length - (LUA_IDSIZE - sizeof "...");
    const char *dots = length < LUA_IDSIZE ? "" : "...";
    if ((size_t)snprintf(shown, sizeof shown, "%s%s", dots, cut) >= sizeof shown) {
        return false;
    }
    length = strlen(shown);
    if (strncmp(text, shown, length) != 0 || text[length] != ':') {
        return false;
    }
    char *end = NULL;
    long number = strtol(text + length + 1, &end, 10);
    if (end == text + length + 1 || strncmp(end, ": ", 2) != 0 || number < 1 || number > INT32_MAX) {
        return false;
    }
    *line = (int)number;
    *rest = end + 2;
    return true;
}

// Every coroutine.wrap on the way puts another place in front: the last one is where it happened.
static void find_place(const script *s, const script_trace *trace, verdict *v)
{
    v->sentence = v->text;
    v->source = script_find_source(s, trace->source);
    v->line = trace->line;
    for (const script_source *f = s->sources; f != NULL;) {
        bool found = read_place(v->sentence, f, &v->line, &v->sentence);
        v->source = found ? f : v->source;
        f = found ? s->sources : f->next;
    }
}

// ---- what to try --------------------------------------------------------------------------------------------------

#define KEEP_WEIGHTS "start it again; hr.knobs.train.save keeps the weights of a run that ends early"

static const struct {
    const char *in_sentence, *hint;
} advice[] = {
    {"(global 'io')", "print(…) and hr.note(…) to write; hr.knobs.train.save to keep the weights"},
    {"(global 'os')",
     "hr.run{steps = 10}.step.seconds for times; a recipe starts nothing and deletes nothing"},
    {"(global 'debug')", "hr.note(…) to look at a value"},
    {"(global 'package')", "require \"name\" for name.lua beside the recipe"},
    {"(global 'dofile')", "require \"name\" for name.lua beside the recipe"},
    {"(global 'loadfile')", "require \"name\" for name.lua beside the recipe"},
    {"(global 'collectgarbage')", "leave it out: Lua collects by itself within its memory limit"},
    {"of memory for Lua", "keep fewer values at once: numbers instead of whole results"},
    {"of Lua between two calls", "end the loop earlier, or call hr.plan or hr.run within it"},
    {"by Ctrl-C", KEEP_WEIGHTS},
    {"by SIGTERM", KEEP_WEIGHTS},
    {"by SIGHUP", KEEP_WEIGHTS},
    {"attempt to compare", "hr.bytes(…) around sizes, and `or 0` behind fields that may be nil"},
};

// Appends "hr.knobs.batch.size = 64" for the pair "batch.size=64" of `length` bytes; returns the bytes it took.
static size_t speak_pair(const char *pair, size_t length, char *out, size_t size)
{
    char value[64];
    char *end = NULL;
    size_t key = strcspn(pair, "=");
    if (key + 1 >= length) {
        return 0;
    }
    (void)snprintf(value, sizeof value, "%.*s", (int)(length - key - 1), pair + key + 1);
    (void)strtod(value, &end);
    const char *quote = end != value && *end == '\0' ? "" : "\"";
    int said = snprintf(out, size, "hr.knobs.%.*s = %s%s%s", (int)key, pair, quote, value, quote);
    return said < 0 ? 0 : (size_t)said;
}

// "-s batch.size=64 -s batch.accumulate=2, or -s execution.mode=graph" as the recipe would say it.
static void speak_lua(const char *hint, char out[SCRIPT_TEXT_MAX])
{
    size_t length = 0;
    const char *at = hint;
    while (length + 1 < SCRIPT_TEXT_MAX && strncmp(at, "-s ", 3) == 0) {
        size_t pair = strcspn(at + 3, " ,");
        length += speak_pair(at + 3, pair, out + length, SCRIPT_TEXT_MAX - length);
        at += 3 + pair;
        const char *between = strncmp(at, ", or -s ", 8) == 0 ? ", or "
                              : strncmp(at, " -s ", 4) == 0   ? "; "
                                                              : "";
        if (length < SCRIPT_TEXT_MAX) {
            length += (size_t)snprintf(out + length, SCRIPT_TEXT_MAX - length, "%s", between);
        }
        at += between[0] == ',' ? 5 : between[0] == ';' ? 1 : 0;
    }
    if (*at != '\0' || length == 0) { // more than pairs: as it stands
        (void)snprintf(out, SCRIPT_TEXT_MAX, "%s", hint);
    }
}

// At a console.
static const char *hint_for_typed(const script *s, const verdict *v)
{
    return s->stop == SCRIPT_INTERRUPTED ? "go on: variables and the training are as they were then"
           : v->source != NULL && strcmp(v->source->name, SCRIPT_CONSOLE) == 0
               ? "the arrow upwards brings the line back"
               : NULL;
}

static void find_hint(const script *s, verdict *v)
{
    const char *typed = s->typed ? hint_for_typed(s, v) : NULL;
    if (v->from_engine) {
        speak_lua(s->raised.hint[0] != '\0' ? s->raised.hint : hr_status_try(v->status), v->hint);
        return;
    }
    const bool stopped = typed != NULL && s->stop == SCRIPT_INTERRUPTED;
    for (size_t k = 0; k < sizeof advice / sizeof *advice && !stopped; k++) {
        if (strstr(v->sentence, advice[k].in_sentence) != NULL) {
            (void)snprintf(v->hint, sizeof v->hint, "%s", advice[k].hint);
            return;
        }
    }
    if (typed != NULL) {
        (void)snprintf(v->hint, sizeof v->hint, "%s", typed);
    } else if (v->source != NULL) {
        (void)snprintf(v->hint, sizeof v->hint, "correct line %d of %.900s and run it again", v->line,
                       v->source->name);
    } else {
        (void)snprintf(v->hint, sizeof v->hint, "%s", hr_status_try(HR_LUA));
    }
}

// ---- the lines ----------------------------------------------------------------------------------------------------

static const char *line_at(const script_source *source, int number, size_t *length)
{
    const char *at = source->text;
    const char *end = source->text + source->length;
    for (int k = 1; k < number && at < end; k++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next == NULL ? end : next + 1;
    }
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *length = (size_t)((newline == NULL ? end : newline) - at);
    *length = *length > LINE_BYTES_SHOWN ? LINE_BYTES_SHOWN : *length;
    return at < end ? at : NULL;
}

static const char *find_in(const char *line, size_t length, const char *word, size_t word_length)
{
    for (size_t k = 0; word_length > 0 && k + word_length <= length; k++) {
        if (memcmp(line + k, word, word_length) == 0) {
            return line + k;
        }
    }
    return NULL;
}

// What the sentence is about: the first 'quoted' word, whole or behind its last dot, if the line has it; else where
// the line begins.
static size_t marked_part(const char *line, size_t length, const char *sentence, size_t *marked_length)
{
    const char *open = strchr(sentence, '\'');
    const char *close = open == NULL ? NULL : strchr(open + 1, '\'');
    for (const char *word = open; close != NULL && word != NULL;
         word = memchr(word, '.', (size_t)(close - word))) {
        word++;
        const char *found = find_in(line, length, word, (size_t)(close - word));
        if (found != NULL) {
            *marked_length = (size_t)(close - word);
            return (size_t)(found - line);
        }
    }
    size_t first = 0;
    while (first < length && (line[first] == ' ' || line[first] == '\t')) {
        first++;
    }
    *marked_length = 1;
    return first;
}

static void print_marker(FILE *to, const char *line, size_t length, const char *sentence)
{
    size_t marked_length = 0;
    size_t at = marked_part(line, length, sentence, &marked_length);
    fputs("         | ", to);
    for (size_t k = 0; k < at; k++) {
        if (((unsigned char)line[k] & 0xC0U) != 0x80U) { // one column for each character of UTF-8
            fputc(line[k] == '\t' ? '\t' : ' ', to);
        }
    }
    fputc('^', to);
    for (size_t k = 1; k < marked_length; k++) {
        fputc('~', to);
    }
    fputc('\n', to);
}

static void print_lines(FILE *to, const verdict *v)
{
    for (int n = v->line - LINES_AROUND; n <= v->line + LINES_AROUND; n++) {
        size_t length = 0;
        const char *line = n > 0 ? line_at(v->source, n, &length) : NULL;
        if (line == NULL) {
            continue;
        }
        fprintf(to, "  %s %4d | ", n == v->line ? ">" : " ", n);
        script_print_text(to, line, length);
        fputc('\n', to);
        if (n == v->line) {
            print_marker(to, line, length, v->sentence);
        }
    }
}

static void print_verdict(const verdict *v, const script_trace *trace, FILE *to)
{
    fprintf(to, "headroom: %s%s: ", hr_status_what(v->status), v->status == HR_INTERRUPTED ? "" : " failed");
    if (v->source != NULL) {
        fprintf(to, "%s:%d: ", v->source->name, v->line);
    }
    script_print_text(to, v->sentence, strlen(v->sentence));
    fputc('\n', to);
    if (v->source != NULL) {
        print_lines(to, v);
    }
    fputs("  try: ", to);
    script_print_text(to, v->hint, strlen(v->hint));
    fputc('\n', to);
    for (unsigned k = 0; trace->frame_count > 1 && k < trace->frame_count; k++) {
        fputs(k == 0 ? "  at   " : "  from ", to);
        script_print_text(to, trace->frames[k], strlen(trace->frames[k]));
        fputc('\n', to);
    }
}

// ---- the verdict --------------------------------------------------------------------------------------------------

static void find_status(const script *s, verdict *v)
{
    v->from_engine = s->stop == SCRIPT_GOES_ON && s->raised.status != HR_OK &&
                     strncmp(v->text, s->raised_text, SCRIPT_TEXT_MAX - 1) == 0;
    v->status = v->from_engine ? s->raised.status : s->stop == SCRIPT_INTERRUPTED ? HR_INTERRUPTED : HR_LUA;
}

// A recipe that names a wrong knob is wrong as a script; what the machine could not do keeps its own code.
static int exit_code_of(const script *s, hr_status status)
{
    int code = hr_status_exit_code(status);
    return s->stop == SCRIPT_GOES_ON && s->check_failed ? 1 : code == 2 ? hr_status_exit_code(HR_LUA) : code;
}

int script_report_error(script *s, int lua_status, FILE *to)
{
    verdict v = {0};
    script_trace trace = s->trace;
    if (s->stop == SCRIPT_GOES_ON) {
        copy_error_text(s, v.text);
    }
    if (s->stop != SCRIPT_GOES_ON) { // before, or within a __tostring
        (void)snprintf(v.text, sizeof v.text, "%s", s->stop_text);
        trace = s->trace;
    }
    if (lua_status == LUA_ERRMEM || strcmp(v.text, "not enough memory") == 0) { // the text is Lua's own
        trace = s->refused_at;
        describe_memory(s, v.text);
    }
    find_status(s, &v);
    find_place(s, &trace, &v);
    find_hint(s, &v);
    print_verdict(&v, &trace, to);
    return exit_code_of(s, v.status);
}
