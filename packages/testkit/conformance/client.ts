// The client under test for the suite's client scenarios: `node client.ts URL`, with the scenario in the environment.
import { type JsonObject, Session, type Tool } from '@convoke/wire'
import { memoryAuthorization } from './memory-authorization.ts'

interface ScenarioContext {
  readonly client_id?: string
  readonly client_secret?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

const url = process.argv.at(-1) ?? ''
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const version = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION']
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as ScenarioContext

/** These mock servers are modern and have no `server/discover`. */
const WITHOUT_DISCOVERY: ReadonlySet<string> = new Set([
  'sep-2322-client-request-state',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
])

function eraOf(): 'modern' | 'legacy' | 'auto' {
  if (WITHOUT_DISCOVERY.has(scenario)) return 'modern'
  const asks = scenario.startsWith('auth/') || scenario === 'request-metadata' || version === '2026-07-28'
  return asks ? 'auto' : 'legacy'
}

/** What a person accepts who changes nothing in the form. */
function acceptDefaults({ requestedSchema }: JsonObject): JsonObject {
  const properties = ((requestedSchema as JsonObject | undefined)?.['properties'] ?? {}) as Record<string, JsonObject>
  if (properties['confirmed'] !== undefined) return { action: 'accept', content: { confirmed: true } }
  const given = Object.entries(properties).flatMap(([key, schema]) =>
    schema['default'] === undefined ? [] : [[key, schema['default']]],
  )
  return { action: 'accept', content: Object.fromEntries(given) }
}

function argumentsFor(name: string, tools: readonly Tool[]): JsonObject {
  if (scenario === 'tools_call') return { a: 5, b: 3 }
  if (scenario.startsWith('http-invalid')) return { region: 'us-west1' }
  if (name !== 'json_schema_echo') return {}
  return { schema: tools.find((other) => other.name === 'json_schema_2020_12_tool')?.inputSchema ?? {} }
}

async function callAll(session: Session): Promise<void> {
  const { items, rejected } = await session.list('tools', {})
  for (const { name, reason } of rejected) process.stderr.write(`rejected ${name}: ${reason}\n`)
  const calls = context.toolCalls ?? items.map(({ name }) => ({ name, arguments: argumentsFor(name, items) }))
  for (const { name, arguments: args } of calls) {
    try {
      await session.callTool(name, args)
    } catch (error) {
      if (scenario.startsWith('auth/')) throw error
      process.stderr.write(`${name}: ${String(error)}\n`)
    }
  }
}

async function readFirst(session: Session): Promise<void> {
  const [resource] = (await session.list('resources', {})).items
  if (resource !== undefined) await session.request('resources/read', { uri: resource.uri })
  const [prompt] = (await session.list('prompts', {})).items
  if (prompt !== undefined) await session.request('prompts/get', { name: prompt.name, arguments: {} })
}

await using session = await Session.connect({
  target: { kind: 'http', url, authorization: memoryAuthorization(url, context) },
  era: eraOf(),
  capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
  handlers: {
    'elicitation/create': async (params) => acceptDefaults(params),
    'roots/list': async () => ({ roots: [] }),
    'sampling/createMessage': async () => ({
      model: 'none',
      role: 'assistant',
      content: { type: 'text', text: 'An answer' },
    }),
  },
})
await callAll(session)
if (scenario === 'http-standard-headers') await readFirst(session)
