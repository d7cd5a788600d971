// Shared by the workload servers: flags, generated tools, results, the log of starts. No dependency, so that their own cost is close to the least.
import { appendFileSync } from 'node:fs'

const DEFAULTS = {
  tools: 100,
  schema: 0,
  page: 0,
  'start-delay': 0,
  'init-delay': 0,
  'call-delay': 0,
  name: 'w',
  port: 0,
  mode: 'stateless',
  fail: '',
}

/** `--tools N --schema BYTES --page N --start-delay MS --init-delay MS --call-delay MS --fail exit|init|hang --output-schema --name X` */
export function readFlags(argv = process.argv.slice(2)) {
  const flags = { ...DEFAULTS }
  for (const [index, word] of argv.entries()) {
    if (!word.startsWith('--')) continue
    const value = argv[index + 1]
    if (value === undefined || value.startsWith('--')) flags[word.slice(2)] = true
    else flags[word.slice(2)] = /^\d+$/.test(value) ? Number(value) : value
  }
  const { START_LOG: log } = process.env
  if (log !== undefined) appendFileSync(log, `${flags.name} ${process.pid}\n`)
  return flags
}

/** A small schema, or one filled up with real properties to about `bytes` bytes. */
function schemaOf(bytes) {
  const schema = {
    type: 'object',
    properties: { text: { type: 'string', description: 'Text to echo' } },
    required: ['text'],
  }
  for (let index = 0; JSON.stringify(schema).length < bytes; index++) {
    const description = `Option number ${index}, an optional field that the tool accepts and describes at some length.`
    schema.properties[`option_${index}`] =
      index % 3 === 0
        ? {
            type: 'object',
            description,
            properties: { a: { type: 'number' }, b: { type: 'array', items: { type: 'string' } } },
          }
        : { type: 'string', description, enum: ['alpha', 'beta', 'gamma'] }
  }
  return schema
}

function outputSchemaOf(index) {
  const item = {
    type: 'object',
    properties: { id: { type: 'string' }, n: { type: 'number', minimum: 0 } },
    required: ['id'],
  }
  return {
    type: 'object',
    properties: { ok: { type: 'boolean' }, [`field_${index}`]: { type: 'array', items: item } },
    required: ['ok'],
  }
}

/** `echo`, `big`, and as many others as the flags ask for. */
export function makeTools(flags) {
  const inputSchema = schemaOf(flags.schema)
  const tools = [
    { name: 'echo', description: 'Echo the text', inputSchema: schemaOf(0) },
    {
      name: 'big',
      description: 'Returns `bytes` bytes of text',
      inputSchema: { type: 'object', properties: { bytes: { type: 'number' } } },
    },
  ]
  for (let index = tools.length; index < flags.tools; index++) {
    tools.push({
      name: `tool_${index}`,
      description: `Workload tool number ${index} of server ${flags.name}`,
      inputSchema,
      ...(flags['output-schema'] ? { outputSchema: outputSchemaOf(index) } : {}),
    })
  }
  return tools
}

export function pageOf(tools, page, cursor) {
  if (page === 0) return { tools }
  const at = Number(cursor ?? 0)
  return { tools: tools.slice(at, at + page), ...(at + page < tools.length ? { nextCursor: String(at + page) } : {}) }
}

const texts = new Map()
const LINE = 'The quick brown fox jumps over the lazy dog, "quoted" and \\ escaped.\n'

function textOf(bytes) {
  if (!texts.has(bytes)) texts.set(bytes, LINE.repeat(Math.ceil(bytes / LINE.length)).slice(0, bytes))
  return texts.get(bytes)
}

export function callResult(name, args) {
  const text = name === 'big' ? textOf(args?.bytes ?? 1_048_576) : String(args?.text ?? '')
  return { content: [{ type: 'text', text }] }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The answer to a request as text, or nothing where there is to be none. */
export async function answer(message, { flags, tools, list }) {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},`
  switch (message.method) {
    case 'initialize':
      return initialize(message, flags, head)
    case 'tools/list':
      return `${head}"result":${list ?? JSON.stringify(pageOf(tools, flags.page, message.params?.cursor))}}`
    case 'tools/call':
      if (flags['call-delay'] > 0) await pause(flags['call-delay'])
      return `${head}"result":${JSON.stringify(callResult(message.params.name, message.params.arguments))}}`
    case 'ping':
      return `${head}"result":{}}`
    default:
      return `${head}"error":{"code":-32601,"message":"Method not found"}}`
  }
}

async function initialize({ params }, flags, head) {
  if (flags.fail === 'hang') return undefined
  if (flags['init-delay'] > 0) await pause(flags['init-delay'])
  if (flags.fail === 'init') return `${head}"error":{"code":-32603,"message":"init failed as asked"}}`
  const result = {
    protocolVersion: params?.protocolVersion ?? '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: flags.name, version: '1.0.0' },
  }
  return `${head}"result":${JSON.stringify(result)}}`
}
