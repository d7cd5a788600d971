// The client under test for the suite's client scenarios: our host with one server, `node client.ts URL`, the scenario in the environment.
import {
  type Binding,
  type CatalogTool,
  createHost,
  defineServer,
  type JsonObject,
  memoryAuthorization,
} from '@convoke/host'

interface ScenarioContext {
  readonly client_id?: string
  readonly client_secret?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

const SERVER = 'judge'
const url = process.argv.at(-1) ?? ''
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as ScenarioContext
const { client_id: id, client_secret: secret } = context

const authorization = memoryAuthorization({
  serverUrl: url,
  redirectUrl: 'http://localhost:3000/callback',
  clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
  ...(id === undefined ? {} : { client: { id, ...(secret === undefined ? {} : { secret }) } }),
  /** A browser whose person agrees at once. */
  async openPage(page) {
    const answer = await fetch(page, { redirect: 'manual' })
    return new URL(answer.headers.get('location') ?? '', page).searchParams
  },
})

/** What a person accepts who changes nothing in the form. */
function acceptDefaults({ requestedSchema }: JsonObject): JsonObject {
  const properties = ((requestedSchema as JsonObject | undefined)?.['properties'] ?? {}) as Record<string, JsonObject>
  if (properties['confirmed'] !== undefined) return { action: 'accept', content: { confirmed: true } }
  const given = Object.entries(properties).flatMap(([key, schema]) =>
    schema['default'] === undefined ? [] : [[key, schema['default']]],
  )
  return { action: 'accept', content: Object.fromEntries(given) }
}

function argumentsFor(name: string, tools: readonly CatalogTool[]): JsonObject {
  if (scenario === 'tools_call') return { a: 5, b: 3 }
  if (scenario.startsWith('http-invalid')) return { region: 'us-west1' }
  if (name !== 'json_schema_echo') return {}
  return { schema: tools.find(({ rawName }) => rawName === 'json_schema_2020_12_tool')?.inputSchema ?? {} }
}

async function callAll(binding: Binding): Promise<void> {
  for (const note of binding.notes) process.stderr.write(`${JSON.stringify(note)}\n`)
  const calls =
    context.toolCalls ??
    binding.tools.map(({ rawName }) => ({ name: rawName, arguments: argumentsFor(rawName, binding.tools) }))
  for (const { name, arguments: args } of calls) {
    const tool = binding.tools.find(({ rawName }) => rawName === name)
    if (tool === undefined) throw new Error(`The scenario calls "${name}", which is not listed`)
    const outcome = await binding.call(tool, args)
    if (!('error' in outcome)) continue
    if (scenario.startsWith('auth/')) throw outcome.error
    process.stderr.write(`${name}: ${outcome.error.code} ${outcome.error.message}\n`)
  }
}

async function readFirst(binding: Binding): Promise<void> {
  const [resource] = (await binding.resources()).items
  if (resource !== undefined) await binding.readResource(resource.uri)
  const [prompt] = (await binding.prompts()).items
  if (prompt !== undefined) await binding.getPrompt(prompt.name, {})
}

await using host = await createHost({
  definitions: [defineServer({ name: SERVER, transport: { kind: 'http', url, headers: {}, envHeaders: {} } })],
  authorization: () => authorization,
  handlers: {
    elicit: async (params) => acceptDefaults(params),
    roots: async () => ({ roots: [] }),
    sample: async () => ({ model: 'none', role: 'assistant', content: { type: 'text', text: 'An answer' } }),
  },
})
await host.whenSettled({ servers: [SERVER] })
const [status] = host.statuses
if (status?.state !== 'ready') throw new Error(`${status?.state}: ${status?.reason?.code} ${status?.reason?.message}`)
await using binding = await host.bind()
await callAll(binding)
if (scenario === 'http-standard-headers') await readFirst(binding)
