import {
  type Binding,
  type CallOutcome,
  type CatalogTool,
  cleanLine,
  type Host,
  type HostError,
  type JsonObject,
  type ServerStatus,
  type ToolResolution,
} from '@convoke/host'
import { addressedServers, spellsFlatName } from '../address.ts'
import { readArguments, readJsonObject, unknownArguments } from '../call-arguments.ts'
import { CommandError, usageError } from '../command-error.ts'
import { readConfiguration, requireAddressed } from '../configuration.ts'
import { notAvailable, openHost, settle } from '../connect.ts'
import { printContent } from '../content.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { readArgumentFile, readStdin } from '../read-input.ts'
import { defined } from '../report.ts'
import { shellOperand, shellWord } from '../shell-word.ts'
import { styled, type Terminal } from '../terminal.ts'

/** What `convoke call` takes besides the tool. */
export interface CallCommandOptions {
  /** `--args`: a JSON object, or `@FILE`. */
  readonly args?: string
  /** `--answers`: a JSON object for what the server asks in a form. */
  readonly answers?: string
  /** `--timeout`: the whole call, in milliseconds. */
  readonly timeout?: number
}

/** `convoke call`: calls one tool of one server, starting only that one. */
export async function runCall(
  context: CommandContext,
  address: string,
  words: readonly string[],
  callOptions: CallCommandOptions,
): Promise<ExitCode> {
  const given = await readGiven(words, callOptions, context.signal)
  const answers = callOptions.answers === undefined ? undefined : readJsonObject(callOptions.answers, '--answers')
  const all = await readConfiguration(context, [])
  const names = all.definitions.map((definition) => definition.name)
  const servers = addressedServers(address, names) ?? names
  const bare = names.find((name) => address === `${name}/`)
  if (bare !== undefined)
    throw usageError(`Name a tool of ${JSON.stringify(bare)}: convoke tools --server ${shellWord(bare)}`)
  requireAddressed(address, names)
  const own = all.problems.filter(({ server }) => server !== undefined && servers.includes(server))
  for (const { severity, message } of servers.length === 1 ? own : []) {
    if (severity === 'warning') context.terminal.notice(styled('yellow', 'warning: '), message)
  }
  await using host = await openHost(context, all, { start: [], answers })
  await settle(context, host, await meantServers(host, address, servers))
  await using binding = await host.bind({ grace: 'none', signal: context.signal })
  const tool = requireTool(binding.resolveTool(address), { address, host, binding })
  const status = host.statuses.find(({ name }) => name === tool.server)
  // Its tools may be known; it has had its time all the same.
  if (status !== undefined && status.state !== 'ready') throw notAvailable(status)
  const args = given.kind === 'json' ? given.value : readArguments(given.words, tool.inputSchema)
  for (const notice of unknownArguments(args, tool.inputSchema))
    context.terminal.notice(styled('yellow', 'warning: '), notice)
  const outcome = await callWithProgress(context, binding, tool, { args, timeoutMs: callOptions.timeout })
  if (outcome.kind === 'failed') await tellMissingScopes(context, host, { server: tool.server, error: outcome.error })
  return tellOutcome(context, outcome, tool)
}

/** Of servers that an address may mean, the one that it means, if everything that they list is known from before; else all of them. */
async function meantServers(host: Host, address: string, servers: readonly string[]): Promise<readonly string[]> {
  if (servers.length < 2) return servers
  const isOpen = servers.some((name) => {
    const life = host.serverLife(name)
    return life?.status.state === 'dormant' && life.tools.from === 'nowhere'
  })
  if (isOpen) return servers
  await using binding = await host.bind({ grace: 'none' })
  const resolution = binding.resolveTool(address)
  return resolution.kind === 'found' ? [resolution.tool.server] : servers
}

type Given = { kind: 'words'; words: readonly string[] } | { kind: 'json'; value: JsonObject }

/** Reads everything that can be wrong before a server is started for it. */
async function readGiven(words: readonly string[], { args }: CallCommandOptions, signal: AbortSignal): Promise<Given> {
  const wantsStdin = words.length === 1 && words[0] === '-'
  if (args !== undefined && words.length > 0) throw usageError('Give either --args or key=value words, not both.')
  if (wantsStdin) return { kind: 'json', value: readJsonObject(await readStdin(signal), 'stdin') }
  if (args === undefined) {
    for (const word of words) if (word.indexOf('=') <= 0) readArguments([word], {})
    return { kind: 'words', words }
  }
  const text = args.startsWith('@') ? await readArgumentFile(args.slice(1)) : args
  return { kind: 'json', value: readJsonObject(text, args.startsWith('@') ? args.slice(1) : '--args') }
}

interface ResolutionFacts {
  readonly address: string
  readonly host: Host
  readonly binding: Binding
}

function requireTool(resolution: ToolResolution, { address, host, binding }: ResolutionFacts): CatalogTool {
  switch (resolution.kind) {
    case 'found':
      return resolution.tool
    case 'ambiguous':
      throw ambiguous(address, resolution.tools)
    case 'server-not-ready':
      throw notReady(address, resolution.status ?? host.statuses.find(({ name }) => name === resolution.server))
    case 'unknown-server':
    case 'unknown-tool': {
      // Two servers whose cleaned names are equal have longer flat names; the short one may mean either.
      const spelled = binding.tools.filter((tool) => spellsFlatName(address, tool))
      const [only] = spelled
      if (only !== undefined && spelled.length === 1) return only
      if (spelled.length > 1) throw ambiguous(address, spelled)
      throw unknownTool(address, resolution.server, nearAddresses(resolution.near, binding.tools))
    }
  }
}

function ambiguous(address: string, tools: readonly CatalogTool[]): CommandError {
  const options = tools.map(({ server, rawName }) => JSON.stringify(`${server}/${rawName}`))
  return usageError(`${JSON.stringify(address)} is ambiguous: it could be ${options.join(' or ')}.`)
}

/** Near names as they can be called. */
function nearAddresses(near: readonly string[], tools: readonly CatalogTool[]): readonly string[] {
  const addresses = near.flatMap((name) => {
    const named = tools.filter(({ rawName }) => rawName === name).map(({ server }) => `${server}/${name}`)
    return named.length > 0 ? named : [name]
  })
  return [...new Set(addresses)].slice(0, 3)
}

function unknownTool(address: string, server: string | undefined, near: readonly string[]): CommandError {
  const what =
    server === undefined
      ? `There is no tool ${JSON.stringify(address)}.`
      : `Server ${JSON.stringify(server)} has no tool ${JSON.stringify(address.slice(server.length + 1))}.`
  const hint = near.length > 0 ? orList(near) : ' convoke tools lists them all.'
  return new CommandError(EXIT.usage, 'TOOL_UNKNOWN', what + hint)
}

const orList = (near: readonly string[]): string =>
  ` Did you mean ${near.map((name) => JSON.stringify(name)).join(' or ')}?`

function notReady(address: string, status: ServerStatus | undefined): CommandError {
  if (status !== undefined) return notAvailable(status)
  return new CommandError(EXIT.notAvailable, 'SERVER_NOT_READY', `No server for ${JSON.stringify(address)} is ready.`)
}

interface Call {
  readonly args: JsonObject
  readonly timeoutMs: number | undefined
}

async function callWithProgress(
  { terminal, signal }: CommandContext,
  binding: Binding,
  tool: CatalogTool,
  { args, timeoutMs }: Call,
): Promise<CallOutcome> {
  try {
    return await binding.call(tool, args, {
      signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(terminal.showsProgress ? { onProgress: (progress) => showProgress(terminal, tool, progress) } : {}),
    })
  } finally {
    terminal.clearTransient()
  }
}

function showProgress(terminal: Terminal, tool: CatalogTool, progress: unknown): void {
  const { progress: done, total, message } = progress as { progress?: unknown; total?: unknown; message?: unknown }
  const share =
    typeof total === 'number' && typeof done === 'number' && total > 0 ? ` ${Math.round((done / total) * 100)} %` : ''
  const count = share === '' && typeof done === 'number' ? ` ${done}` : ''
  const text = typeof message === 'string' ? ` ${cleanLine(message, 120)}` : ''
  terminal.transient(`${tool.server}/${tool.rawName}${share}${count}${text}`)
}

function tellOutcome({ options, terminal }: CommandContext, outcome: CallOutcome, tool: CatalogTool): ExitCode {
  switch (outcome.kind) {
    case 'ok':
    case 'tool-error': {
      const { result } = outcome
      const content = Array.isArray(result.content) ? result.content : []
      const { structuredContent } = result
      if (options.json) {
        terminal.json({ version: JSON_VERSION, outcome: outcome.kind, content, ...defined({ structuredContent }) })
      } else {
        printContent(terminal, content, structuredContent)
        if (outcome.kind === 'tool-error')
          terminal.notice(styled('red', `${tool.server}/${tool.rawName} reported an error`))
      }
      return outcome.kind === 'ok' ? EXIT.ok : EXIT.toolError
    }
    case 'failed':
      throw new CommandError(failedExit(outcome.error.code), outcome.error.code, outcome.error.message)
    case 'unknown':
      throw new CommandError(EXIT.unknownOutcome, outcome.error.code, outcome.error.message)
    case 'cancelled':
      throw new CommandError(EXIT.cancelled, outcome.error.code, outcome.error.message)
  }
}

/** A server that refuses for want of scopes names them; the next sign-in asks for them. */
async function tellMissingScopes(
  { terminal }: CommandContext,
  host: Host,
  { server, error }: { readonly server: string; readonly error: HostError },
): Promise<void> {
  if (failedExit(error.code) !== EXIT.needsPerson) return
  const [status] = await host.signInStatuses({ servers: [server] })
  const { wantedScopes = [] } = status ?? {}
  if (wantedScopes.length === 0) return
  const [what, them] = wantedScopes.length === 1 ? ['a scope', 'it'] : ['scopes', 'them']
  const scopes = cleanLine(wantedScopes.join(' '), 300)
  terminal.notice(
    `The sign-in lacks ${what}: ${scopes}. This asks for ${them} besides: convoke login ${shellOperand(server)}`,
  )
}

function failedExit(code: string): ExitCode {
  if (code === 'AUTH_REQUIRED' || code === 'AUTH_FAILED') return EXIT.needsPerson
  if (code === 'ARGUMENTS_INVALID' || code === 'TOOL_UNKNOWN') return EXIT.usage
  return code === 'SERVER_NOT_READY' || code === 'SERVER_DISABLED' ? EXIT.notAvailable : EXIT.failed
}
