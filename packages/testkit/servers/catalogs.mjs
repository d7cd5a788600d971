// Tool lists for the scripted servers. What a tool does stands in `does` and is not listed; see ../src/script.ts for the kinds.

const object = (properties = {}, required = []) => ({
  type: 'object',
  properties,
  ...(required.length > 0 ? { required } : {}),
})
const text = { type: 'string', description: 'Text to give back' }
const whole = { type: 'integer', minimum: 0 }
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** One tool for each thing that a server can do to its host. */
const workshop = [
  { name: 'echo', description: 'Gives the text back', inputSchema: object({ text }, ['text']), does: { kind: 'echo' } },
  {
    name: 'fail',
    description: 'Answers that it went wrong',
    inputSchema: object({ text }),
    does: { kind: 'tool-error', text: 'It went wrong, as asked' },
  },
  {
    name: 'refuse',
    description: 'Answers with a protocol error',
    inputSchema: object(),
    does: { kind: 'rpc-error', code: -32050, message: 'Refused, as asked', data: { why: 'test' } },
  },
  { name: 'silent', description: 'Never answers', inputSchema: object(), does: { kind: 'silent' } },
  {
    name: 'late',
    description: 'Answers after `ms` milliseconds',
    inputSchema: object({ ms: whole, text }),
    does: { kind: 'late', ms: 200 },
  },
  {
    name: 'big',
    description: 'Answers with `bytes` bytes of text',
    inputSchema: object({ bytes: whole }),
    does: { kind: 'big', bytes: 1_048_576 },
  },
  {
    name: 'crash',
    description: 'Ends the process instead of an answer',
    inputSchema: object(),
    does: { kind: 'exit', code: 7, onCall: 1 },
  },
  {
    name: 'drop',
    description: 'Cuts the connection instead of an answer',
    inputSchema: object(),
    does: { kind: 'drop' },
  },
  {
    name: 'elicit',
    description: 'Asks the person for a name',
    inputSchema: object(),
    does: {
      kind: 'ask',
      method: 'elicitation/create',
      params: { message: 'What is your name?', requestedSchema: object({ name: { type: 'string' } }, ['name']) },
    },
  },
  {
    name: 'sample',
    description: 'Asks the model',
    inputSchema: object(),
    does: {
      kind: 'ask',
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }], maxTokens: 16 },
    },
  },
  {
    name: 'roots',
    description: 'Asks for the roots',
    inputSchema: object(),
    does: { kind: 'ask', method: 'roots/list', params: {} },
  },
  {
    name: 'progress',
    description: 'Tells its progress `count` times',
    inputSchema: object({ count: whole, everyMs: whole }),
    does: { kind: 'progress', count: 3, everyMs: 0 },
  },
  {
    name: 'log',
    description: 'Writes `count` log messages',
    inputSchema: object({ count: whole }),
    does: { kind: 'log', level: 'info', count: 1 },
  },
  {
    name: 'change',
    description: 'Changes the tool list and says so `count` times',
    inputSchema: object({ count: whole, everyMs: whole }),
    does: { kind: 'list-changed', what: 'tools', count: 1, everyMs: 0, adds: 'added' },
  },
  {
    name: 'touch',
    description: 'Says that a resource was updated',
    inputSchema: object({ uri: { type: 'string' } }),
    does: { kind: 'resource-updated', uri: 'scripted://one' },
  },
  {
    name: 'noise',
    description: 'Prints lines that are no messages, then answers',
    inputSchema: object(),
    does: { kind: 'noise', lines: ['\u001b[32mworking…\u001b[0m', '{not json', ''] },
  },
  {
    name: 'structured',
    description: 'Answers with structured content',
    inputSchema: object(),
    outputSchema: object({ sum: { type: 'number' } }, ['sum']),
    does: { kind: 'content', content: [{ type: 'text', text: '{"sum":3}' }], structuredContent: { sum: 3 } },
  },
  {
    name: 'mismatch',
    description: 'Promises structured content and sends none',
    inputSchema: object(),
    outputSchema: object({ sum: { type: 'number' } }, ['sum']),
    does: { kind: 'text', text: 'no structure' },
  },
  {
    name: 'image',
    description: 'Answers with a picture',
    inputSchema: object(),
    does: { kind: 'content', content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] },
  },
  { name: 'seen', description: 'Tells what the server has received', inputSchema: object(), does: { kind: 'seen' } },
]

/** Names that a model's provider would refuse, that differ in one character, or that come twice. */
const hostileNames = [
  'search-a',
  'search_a',
  'search.a',
  'read_file',
  'READ_FILE',
  'naïve.tool/x',
  '日本語',
  '',
  ' ',
  'a__b',
  '__proto__',
  'constructor',
  'twice',
  'twice',
  `${'long_name_'.repeat(7)}1`,
  `${'long_name_'.repeat(7)}2`,
  'x'.repeat(300),
  '../../etc/passwd',
  'tool;rm -rf',
  '\u202egnp.exe',
  'null\u0000byte',
].map((name) => ({
  name,
  description: `Named ${JSON.stringify(name)}`,
  inputSchema: object({ text }),
  does: { kind: 'echo-name' },
}))

/** Schemas as they are met in the wild. `good` must always be callable. */
const schemaZoo = [
  { name: 'good', inputSchema: object({ text }, ['text']) },
  { name: 'boolean_schema', inputSchema: { type: 'object', properties: { x: true } } },
  {
    name: 'recursive',
    inputSchema: {
      type: 'object',
      properties: { node: { $ref: '#/$defs/node' } },
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    },
  },
  {
    name: 'unresolved_output',
    inputSchema: object(),
    outputSchema: { type: 'object', properties: { x: { $ref: '#/$defs/missing' } } },
  },
  {
    name: 'draft_04',
    inputSchema: {
      id: 'http://example.test/a',
      type: 'object',
      properties: { n: { type: 'number', minimum: 0, exclusiveMinimum: true } },
    },
  },
  { name: 'no_root_type', inputSchema: { properties: { x: { type: 'string' } } } },
  {
    name: 'root_one_of',
    inputSchema: {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    },
  },
  {
    name: 'type_list',
    inputSchema: { type: 'object', properties: { list: { type: 'array', items: { type: ['object', 'null'] } } } },
  },
  {
    name: 'dynamic_ref',
    inputSchema: {
      type: 'object',
      properties: { x: { $dynamicRef: '#node' } },
      $defs: { node: { $dynamicAnchor: 'node', type: 'object' } },
    },
  },
  { name: 'property_named_type', inputSchema: { type: 'object', properties: { type: 'string' } } },
  { name: 'promised_structure', inputSchema: object(), outputSchema: object({ x: { type: 'string' } }, ['x']) },
  { name: 'schema_missing' },
  { name: 'schema_null', inputSchema: null },
  { name: 'schema_array', inputSchema: { type: 'array' } },
].map((tool) => ({ description: `Schema zoo: ${tool.name}`, ...tool, does: { kind: 'echo' } }))

const named = { workshop, 'hostile-names': hostileNames, 'schema-zoo': schemaZoo }

/**
 * The tools of a script: a named list, a count (`echo` and generated ones), or the list itself.
 * @param {string | number | readonly object[] | undefined} tools
 */
export function toolsOf(tools) {
  if (tools === undefined) return workshop
  if (typeof tools === 'string') return named[tools] ?? []
  if (typeof tools === 'number') return generate(tools)
  return tools.map((tool) => ({ inputSchema: object({ text }), does: { kind: 'echo' }, ...tool }))
}

function generate(count) {
  const others = Array.from({ length: Math.max(0, count - 1) }, (_, index) => ({
    name: `tool_${index + 1}`,
    description: `Generated tool number ${index + 1}`,
    inputSchema: object({ text }),
    does: { kind: 'echo' },
  }))
  return count === 0 ? [] : [workshop[0], ...others]
}
