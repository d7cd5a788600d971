// A host for the length of one command.

import {
  type Binding,
  createHost,
  type Host,
  type HostOptions,
  type JsonObject,
  type LoadedConfig,
  type ServerDefinition,
  type ServerLife,
  type ServerStatus,
} from '@convoke/host'
import { CommandError } from './command-error.ts'
import { isUnusable, placesOf, readConfiguration, requireServers } from './configuration.ts'
import type { CommandContext } from './context.ts'
import { declinedNotice, elicitationHandler } from './elicitation.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { mustWake, type Need, wakeFacts } from './needs.ts'
import { reasonText } from './server-lines.ts'
import { signInSettings } from './sign-in-settings.ts'
import { VERSION } from './version.ts'
import { showWaiting } from './waiting-line.ts'

/** Somebody waits for the end of the command, and many servers never notice the end of their input; in milliseconds. */
const CLOSE_GRACE_MS = 250

/** How {@link openHost} starts. */
export interface OpenHostOptions {
  /** The servers to start at once; `all`, as their entries say, when it is absent. */
  readonly start?: readonly string[]
  /** What --answers holds. */
  readonly answers?: JsonObject | undefined
  /** What --store holds. */
  readonly store?: string | undefined
}

/** Makes the host and starts servers. Hold it with `await using`. */
export async function openHost(
  context: CommandContext,
  { definitions }: Pick<LoadedConfig, 'definitions'>,
  { start, answers, store }: OpenHostOptions = {},
): Promise<Host> {
  const { stateDirectory } = await placesOf(context)
  const host = await createHost({
    ...(await knowing(context, { answers, store })),
    definitions: definitions.map(withoutWaiting),
    stateDirectory,
    start: start ?? 'all',
    closeGraceMs: CLOSE_GRACE_MS,
    signal: context.signal,
  })
  host.subscribe(declinedNotice(context))
  return host
}

/** Who is waited for, and for how long, is said on the command line; that a server is needed means here that it starts at once. */
function withoutWaiting(definition: ServerDefinition): ServerDefinition {
  return definition.required ? { ...definition, required: false, startup: 'eager' } : definition
}

/** A host without servers, for what can be told without starting any. It writes no state; sign-ins are only looked at. Hold it with `await using`. */
export async function openPlanner(context: CommandContext): Promise<Host> {
  return createHost({ ...(await knowing(context)), definitions: [], signal: context.signal })
}

/**
 * What every command says of itself. It is the same for all of them, because a server may list other tools to another client: what one
 * command has listed, the others know.
 */
async function knowing(
  context: CommandContext,
  { answers, store }: Pick<OpenHostOptions, 'answers' | 'store'> = {},
): Promise<Pick<HostOptions, 'clientInfo' | 'cacheDirectory' | 'signIns' | 'handlers'>> {
  const places = await placesOf(context)
  return {
    clientInfo: { name: 'convoke', version: VERSION },
    cacheDirectory: places.cacheDirectory,
    signIns: signInSettings(context, places, store),
    handlers: { elicit: elicitationHandler(context, answers) },
  }
}

/** Starts those of `wake` that sleep, and waits until no server is starting or --wait is over. Says on a terminal who is awaited. */
export async function settle(context: CommandContext, host: Host, wake: readonly string[] = []): Promise<void> {
  const limits = { waitMs: context.options.wait, signal: context.signal }
  const hide = showWaiting(host, context.terminal)
  try {
    await Promise.all([host.whenSettled({ ...limits, servers: wake }), host.whenSettled(limits)])
  } finally {
    hide()
  }
}

/** Those of `names` that have to be started for what is needed. */
export function sleepersFor(
  need: Need,
  names: readonly string[],
  { host, definitions }: { readonly host: Host; readonly definitions: LoadedConfig['definitions'] },
): readonly string[] {
  const wanted = new Set(names)
  return definitions
    .filter((one) => wanted.has(one.name) && mustWake(need, wakeFacts(one, host.serverLife(one.name))))
    .map(({ name }) => name)
}

/** The servers a listing is about, all of them settled or out of time. */
export interface View extends AsyncDisposable {
  readonly binding: Binding
  /** The wanted servers only. */
  readonly statuses: readonly ServerStatus[]
  /** Those of `statuses` that are enabled and cannot answer. */
  readonly absent: readonly ServerStatus[]
  /** What is known of each wanted server. */
  readonly lives: ReadonlyMap<string, ServerLife>
  /** The names given with --server; undefined when there were none. */
  readonly servers: readonly string[] | undefined
  /** Are the tools of this server listed? Not with another --server, nor when its entry keeps them from the command. */
  showsToolsOf(server: string): boolean
  /** The exit code of a listing; `failureCount` servers answered, but not this question. */
  exitCode(failureCount?: number): ExitCode
}

/**
 * Starts what is needed of the servers of --server, or of all, and waits for them. Hold it with `await using`.
 * @throws {CommandError} for an unknown name (exit code 2) or a file of --config that cannot be used (4).
 */
export async function openView(context: CommandContext, need: Need): Promise<View> {
  const { options, signal } = context
  const servers = options.server.length > 0 ? options.server : undefined
  const loaded = await readConfiguration(context, servers)
  requireServers(options.server, loaded)
  const { definitions } = loaded
  const host = await openHost(context, loaded, servers === undefined ? {} : { start: [] })
  try {
    const names = servers ?? definitions.map(({ name }) => name)
    await settle(context, host, sleepersFor(need, names, { host, definitions }))
    const settled = host.statuses
    const binding = await host.bind({ grace: 'none', signal })
    const isWanted = (name: string): boolean => servers === undefined || servers.includes(name)
    const statuses = latest(settled, binding.statuses).filter(({ name }) => isWanted(name))
    const absent = absentServers(statuses)
    const lives = new Map(statuses.flatMap(({ name }) => lifeEntry(name, host.serverLife(name))))
    const hidden = new Set(definitions.filter((one) => one.omitToolsFrom.includes('command')).map((one) => one.name))
    const isPartial = (failureCount: number): boolean => options.strict && absent.length + failureCount > 0
    return {
      ...{ binding, statuses, absent, lives, servers },
      showsToolsOf: (name) => isWanted(name) && !hidden.has(name),
      exitCode(failureCount = 0) {
        if (isUnusable(loaded)) return EXIT.configuration
        return isPartial(failureCount) ? EXIT.notAvailable : EXIT.ok
      },
      async [Symbol.asyncDispose]() {
        await binding[Symbol.asyncDispose]()
        await host.close()
      },
    }
  } catch (error) {
    await host.close()
    throw error
  }
}

const lifeEntry = (name: string, life: ServerLife | undefined): (readonly [string, ServerLife])[] =>
  life === undefined ? [] : [[name, life]]

/** Taking the view starts failed servers anew; what this command waited for is how they settled. */
function latest(settled: readonly ServerStatus[], bound: readonly ServerStatus[]): readonly ServerStatus[] {
  const ready = new Map(bound.filter(({ state }) => state === 'ready').map((status) => [status.name, status]))
  return settled.map((status) => ready.get(status.name) ?? status)
}

/** Servers that are wanted and cannot answer now: all but those that are ready, asleep, or switched off on purpose. */
export function absentServers(statuses: readonly ServerStatus[]): readonly ServerStatus[] {
  return statuses.filter(({ state, reason }) => {
    if (state === 'disabled') return reason?.code !== 'SERVER_DISABLED'
    return state !== 'ready' && state !== 'dormant'
  })
}

/** The error of a command that cannot go on without this server. */
export function notAvailable(status: ServerStatus): CommandError {
  const { name, state, reason } = status
  const needsPerson = state === 'needs-auth' || state === 'needs-approval' || state === 'needs-input'
  return new CommandError(
    needsPerson ? EXIT.needsPerson : EXIT.notAvailable,
    reason?.code ?? 'SERVER_NOT_READY',
    `Server ${JSON.stringify(name)} is not available (${state})${reasonText(status)}`,
  )
}
