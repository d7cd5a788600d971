// The client under test for the suite's client scenarios: our host with one server, `node client.ts URL`, the scenario in the environment.
import {
  type Binding,
  type CallOutcome,
  type CatalogTool,
  createHost,
  defineServer,
  type Host,
  type JsonObject,
  nodePlatform,
} from '@convoke/host'
import { exitOnSignals } from '../src/end-with-us.ts'
import { openIdentity, type Scenario, type ScenarioContext } from './client-identity.ts'

const SERVER = 'judge'
/** The first sign-in, and one more for what a tool wants besides: a server that is not content then never is. */
const SIGN_INS_MAX = 2
/** The person agrees at once; a page that leads nowhere is not waited for as long as people are. */
const SIGN_IN_TIMEOUT_MS = 20_000

const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as ScenarioContext
const judged: Scenario = {
  name: process.env['MCP_CONFORMANCE_SCENARIO'] ?? '',
  url: process.argv.at(-1) ?? '',
  context,
}
const { name: scenario, url } = judged
let signIns = 0

/** A browser whose person agrees at once. It goes where it is sent, and once: a callback answers a page. */
async function agree(page: string): Promise<void> {
  const answer = await fetch(page, { redirect: 'manual' })
  const back = answer.headers.get('location')
  if (back === null) throw new Error(`The sign-in page answered with HTTP ${answer.status} and leads nowhere`)
  const ended = await fetch(new URL(back, page), { redirect: 'manual' })
  await ended.text()
}

/** @returns false: there have been enough, or nobody signs in here. */
async function signIn(host: Host): Promise<boolean> {
  const [definition] = host.definitions
  if (definition?.oauth?.grant !== undefined || signIns === SIGN_INS_MAX) return false
  signIns += 1
  const { issuer, scopes } = await host.signIn(SERVER, { openPage: agree, timeoutMs: SIGN_IN_TIMEOUT_MS })
  process.stderr.write(`signed in at ${issuer} (${scopes?.join(' ') ?? 'scopes not told'})\n`)
  return true
}

/** Until the server is ready, or can never be. */
async function start(host: Host): Promise<void> {
  for (;;) {
    await host.whenSettled({ servers: [SERVER] })
    const [status] = host.statuses
    if (status?.state === 'ready') return
    if (status?.state === 'needs-auth' && (await signIn(host))) continue
    throw new Error(`${status?.state}: ${status?.reason?.code} ${status?.reason?.message}`)
  }
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

function argumentsFor(name: string, tools: readonly CatalogTool[]): JsonObject {
  if (scenario === 'tools_call') return { a: 5, b: 3 }
  if (scenario.startsWith('http-invalid')) return { region: 'us-west1' }
  if (name !== 'json_schema_echo') return {}
  return { schema: tools.find(({ rawName }) => rawName === 'json_schema_2020_12_tool')?.inputSchema ?? {} }
}

/** One call; where credentials are refused the person is asked, as often as there is sense in it. */
async function call(host: Host, name: string, args: JsonObject): Promise<CallOutcome> {
  for (;;) {
    await using binding = await host.bind()
    const tool = binding.tools.find(({ rawName }) => rawName === name)
    if (tool === undefined) throw new Error(`The scenario calls "${name}", which is not listed`)
    const outcome = await binding.call(tool, args)
    if (!isRefused(outcome) || !(await signIn(host))) return outcome
    await start(host)
  }
}

function isRefused(outcome: CallOutcome): boolean {
  return 'error' in outcome && (outcome.error.code === 'AUTH_REQUIRED' || outcome.error.code === 'AUTH_FAILED')
}

async function callAll(host: Host, { notes, tools }: Binding): Promise<void> {
  for (const note of notes) process.stderr.write(`${JSON.stringify(note)}\n`)
  const calls =
    context.toolCalls ?? tools.map(({ rawName }) => ({ name: rawName, arguments: argumentsFor(rawName, tools) }))
  for (const { name, arguments: args } of calls) {
    const outcome = await call(host, name, args)
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

exitOnSignals()
using identity = await openIdentity(judged)
const { oauth, enterprise, env } = identity
const transport = { kind: 'http', url, headers: {}, envHeaders: {} } as const
await using host = await createHost({
  definitions: [defineServer({ name: SERVER, transport, ...(oauth === undefined ? {} : { oauth }) })],
  signIns: {
    store: 'memory',
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    ...(enterprise === undefined ? {} : { enterprise }),
  },
  platform: { ...nodePlatform, env: { ...nodePlatform.env, ...env } },
  handlers: {
    elicit: async (params) => acceptDefaults(params),
    roots: async () => ({ roots: [] }),
    sample: async () => ({ model: 'none', role: 'assistant', content: { type: 'text', text: 'An answer' } }),
  },
})
await start(host)
await using binding = await host.bind()
await callAll(host, binding)
if (scenario === 'http-standard-headers') await readFirst(binding)
