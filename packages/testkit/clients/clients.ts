// Real MCP clients in front of one endpoint: each lists the tools and calls an echo tool.
import { mkdir, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport as Transport1 } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type ModelServer, startModel } from './model-server.ts'
import { type CommandResult, type Home, openHome, runCommand } from './run-command.ts'

/** What a client met. */
export interface ClientOutcome {
  /** Names as the client shows them to its model or its user. */
  readonly toolNames: readonly string[]
  /** What the echo tool gave back, as the client hands it on. */
  readonly answer: string
}

/** An endpoint and the folders of installed clients by name. */
export interface ClientWorld {
  readonly url: string
  readonly folders: ReadonlyMap<string, string>
  /** The flat name of the echo tool and of its argument, for clients without a model. */
  readonly echo: { readonly tool: string; readonly argument: string }
}

export type ClientRun = (world: ClientWorld, text: string) => Promise<ClientOutcome>

/** How many of the expected tools were shown. Clients put prefixes of their own in front of names; Codex also turns hyphens into underscores. */
export function countSeen(expected: readonly string[], shown: readonly string[]): number {
  const plain = (name: string): string => name.replaceAll('-', '_')
  const names = shown.map(plain)
  return expected.filter((name) => names.some((one) => new RegExp(`(^|[_/])${plain(name)}$`).test(one))).length
}

/** What is wrong with an outcome, or nothing: every tool was shown, and the text came back. */
export function faultOf(
  { toolNames, answer }: ClientOutcome,
  expected: readonly string[],
  text: string,
): string | undefined {
  const count = countSeen(expected, toolNames)
  if (count !== expected.length) return `saw ${count} of ${expected.length} tools: ${toolNames.join(', ')}`
  return answer.includes(text) ? undefined : `the echo answered ${answer.slice(0, 300)}`
}

/** The name under which the clients know the endpoint. */
const SERVER = 'convoke'
const PROMPT = 'Call the echo tool.'

/** Runs a client that has a model, against a scripted one. */
async function withModel(
  text: string,
  run: (model: ModelServer, home: Home) => Promise<CommandResult>,
): Promise<ClientOutcome> {
  await using home = await openHome()
  await using model = await startModel(text)
  const { code, stdout, stderr } = await run(model, home)
  if (code !== 0 || model.outputs.length === 0) {
    const requests = model.requests.slice(-20).join(', ')
    throw new Error(`ended with ${code}; model requests: ${requests}\n${stdout.slice(-1_500)}\n${stderr.slice(-1_500)}`)
  }
  return { toolNames: model.toolNames, answer: model.outputs.join(' ') }
}

function folderOf({ folders }: ClientWorld, name: string): string {
  const folder = folders.get(name)
  if (folder === undefined) throw new Error(`${name} is not installed`)
  return join(folder, 'node_modules')
}

async function writeInto(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

const codex: ClientRun = (world, text) =>
  withModel(text, async (model, home) => {
    const settings = [
      'model = "mock-model"',
      'model_provider = "mock"',
      'approval_policy = "never"',
      'sandbox_mode = "danger-full-access"',
      `[model_providers.mock]\nname = "mock"\nbase_url = "${model.url}/v1"\nwire_api = "responses"`,
      `[mcp_servers.${SERVER}]\nurl = "${world.url}"\nrequired = true`,
    ]
    await writeInto(join(home.path, 'codex/config.toml'), `${settings.join('\n')}\n`)
    const entry = join(folderOf(world, 'codex'), '@openai/codex/bin/codex.js')
    const env = { CODEX_HOME: join(home.path, 'codex') }
    return runCommand(process.execPath, [entry, 'exec', '--skip-git-repo-check', '--json', PROMPT], home, env)
  })

const opencode: ClientRun = (world, text) =>
  withModel(text, async (model, home) => {
    const settings = {
      autoupdate: false,
      share: 'disabled',
      model: 'mock/mock-model',
      small_model: 'mock/mock-model',
      provider: {
        mock: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${model.url}/v1`, apiKey: 'x' },
          models: { 'mock-model': { tool_call: true, limit: { context: 100_000, output: 1_000 } } },
        },
      },
      mcp: { [SERVER]: { type: 'remote', url: world.url, enabled: true, oauth: false } },
    }
    await writeInto(join(home.work, 'opencode.json'), JSON.stringify(settings))
    const binary = join(folderOf(world, 'opencode'), `opencode-${platform()}-${arch()}`, 'bin/opencode')
    const env = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }
    return runCommand(binary, ['run', '--format', 'json', PROMPT], home, env)
  })

const geminiCli: ClientRun = (world, text) =>
  withModel(text, async (model, home) => {
    const settings = {
      security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      general: { enableAutoUpdate: false },
      mcpServers: { [SERVER]: { httpUrl: world.url, trust: true } },
    }
    await writeInto(join(home.path, '.gemini/settings.json'), JSON.stringify(settings))
    const env = { GEMINI_API_KEY: 'x', GOOGLE_GEMINI_BASE_URL: model.url, GEMINI_CLI_TRUST_WORKSPACE: 'true' }
    const entry = join(folderOf(world, 'gemini'), '.bin/gemini')
    const args = [entry, '-m', 'gemini-2.5-flash', '--yolo', '-o', 'json', '-p', PROMPT]
    return runCommand(process.execPath, args, home, env)
  })

const inspector: ClientRun = async (world, text) => {
  await using home = await openHome()
  const entry = join(folderOf(world, 'inspector'), '.bin/mcp-inspector')
  const ask = async (...args: readonly string[]): Promise<unknown> => {
    const all = [entry, '--cli', world.url, '--transport', 'http', ...args]
    const { code, stdout, stderr } = await runCommand(process.execPath, all, home)
    if (code !== 0) throw new Error(`ended with ${code}: ${stderr.slice(-1_500)}${stdout.slice(-1_500)}`)
    return JSON.parse(stdout)
  }
  const { tools } = (await ask('--method', 'tools/list')) as { tools: { name: string }[] }
  const { tool, argument } = world.echo
  const called = await ask('--method', 'tools/call', '--tool-name', tool, '--tool-arg', `${argument}=${text}`)
  return { toolNames: tools.map(({ name }) => name), answer: JSON.stringify(called) }
}

const info = { name: 'convoke-clients', version: '1.0.0' }

const sdk1: ClientRun = async ({ url, echo }, text) => {
  const client = new Client1(info)
  const transport = new Http1(new URL(url))
  try {
    await client.connect(transport as Transport1)
    const { tools } = await client.listTools()
    const result = await client.callTool({ name: echo.tool, arguments: { [echo.argument]: text } })
    await transport.terminateSession()
    return { toolNames: tools.map(({ name }) => name), answer: JSON.stringify(result.content) }
  } finally {
    await client.close()
  }
}

function sdk2(mode: 'legacy' | 'modern'): ClientRun {
  return async ({ url, echo }, text) => {
    const versionNegotiation = { mode: mode === 'modern' ? { pin: '2026-07-28' } : ('legacy' as const) }
    const client = new Client2(info, { versionNegotiation })
    try {
      await client.connect(new Http2(new URL(url)))
      if (client.getProtocolEra() !== mode) throw new Error(`It speaks the ${client.getProtocolEra()} era`)
      const { tools } = await client.listTools()
      const result = await client.callTool({ name: echo.tool, arguments: { [echo.argument]: text } })
      return { toolNames: tools.map(({ name }) => name), answer: JSON.stringify(result.content) }
    } finally {
      await client.close()
    }
  }
}

/** In the order in which they run. `installed`: the package that must be there. */
export const CLIENTS: readonly { readonly name: string; readonly installed?: string; readonly run: ClientRun }[] = [
  { name: 'SDK v1 client 1.32.2', run: sdk1 },
  { name: 'SDK v2 client 2.4.0, session era', run: sdk2('legacy') },
  { name: 'SDK v2 client 2.4.0, 2026-07-28', run: sdk2('modern') },
  { name: 'inspector', installed: 'inspector', run: inspector },
  { name: 'codex', installed: 'codex', run: codex },
  { name: 'gemini-cli', installed: 'gemini', run: geminiCli },
  { name: 'opencode', installed: 'opencode', run: opencode },
]
