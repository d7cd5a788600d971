/* A workload server with next to no start-up time, so that a command is all that is measured: `cc -O2 -o native-stdio native-stdio.c`.
   Enough JSON for the well-formed messages of hosts: members are found by their text. `--tools N --name X`; echoes `text` as it stands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *tools_result;

static void make_tools(int count, const char *name) {
  size_t room = (size_t)count * 300 + 400;
  tools_result = malloc(room);
  size_t at = (size_t)snprintf(tools_result, room, "{\"tools\":[");
  for (int index = 0; index < count; index++) {
    const char *form = "%s{\"name\":\"%s%.0d\",\"description\":\"Workload tool number %d of server %s\",\"inputSchema\":"
                       "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}}";
    at += (size_t)snprintf(tools_result + at, room - at, form, index ? "," : "", index ? "tool_" : "echo", index, index, name);
  }
  snprintf(tools_result + at, room - at, "]}");
}

/* Where the value of a member begins, or NULL. */
static const char *member(const char *line, const char *name) {
  char key[64];
  snprintf(key, sizeof key, "\"%s\":", name);
  const char *found = strstr(line, key);
  return found ? found + strlen(key) : NULL;
}

/* The length of a string value with its quotes, or of a plain value. */
static int length_of(const char *value) {
  if (*value != '"') return (int)strcspn(value, ",}");
  const char *end = value + 1;
  while (*end && *end != '"') end += *end == '\\' ? 2 : 1;
  return (int)(end - value) + 1;
}

static int is_method(const char *method, const char *name) {
  size_t length = strlen(name);
  return method && !strncmp(method + 1, name, length) && method[length + 1] == '"';
}

static void answer(const char *line) {
  const char *id = member(line, "id"), *method = member(line, "method");
  if (!id || !method) return;
  printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,", length_of(id), id);
  if (is_method(method, "initialize")) {
    const char *version = member(line, "protocolVersion");
    printf("\"result\":{\"protocolVersion\":%.*s,\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"native\",\"version\":\"1\"}}}\n",
           version ? length_of(version) : 12, version ? version : "\"2025-06-18\"");
  } else if (is_method(method, "tools/list")) {
    printf("\"result\":%s}\n", tools_result);
  } else if (is_method(method, "tools/call")) {
    const char *text = member(line, "text");
    printf("\"result\":{\"content\":[{\"type\":\"text\",\"text\":%.*s}]}}\n", text ? length_of(text) : 2, text ? text : "\"\"");
  } else if (is_method(method, "ping")) {
    printf("\"result\":{}}\n");
  } else {
    printf("\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n");
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  int count = 100;
  const char *name = "native";
  for (int index = 1; index + 1 < argc; index++) {
    if (!strcmp(argv[index], "--tools")) count = atoi(argv[index + 1]);
    if (!strcmp(argv[index], "--name")) name = argv[index + 1];
  }
  make_tools(count, name);
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) answer(line);
  return 0;
}
