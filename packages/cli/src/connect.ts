// A host for the length of one command.

import {
  type Binding,
  createHost,
  type Host,
  type HostHandlers,
  type LoadedConfig,
  type ServerStatus,
} from '@convoke/host'
import { CommandError } from './command-error.ts'
import { isUnusable, placesOf, readConfiguration, requireServers } from './configuration.ts'
import type { CommandContext } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { reasonText } from './server-lines.ts'
import { VERSION } from './version.ts'
import { showWaiting } from './waiting-line.ts'

/** Somebody waits for the end of the command, and many servers never notice the end of their input; in milliseconds. */
const CLOSE_GRACE_MS = 250

/** How {@link openHost} starts. */
export interface OpenHostOptions {
  /** The servers to start; all when it is absent. */
  readonly servers?: readonly string[]
  readonly handlers?: HostHandlers
}

/** Makes the host and starts the servers. Hold it with `await using`. */
export async function openHost(
  context: CommandContext,
  loaded: LoadedConfig,
  options: OpenHostOptions = {},
): Promise<Host> {
  const { stateDirectory, cacheDirectory } = await placesOf(context)
  return createHost({
    definitions: loaded.definitions,
    clientInfo: { name: 'convoke', version: VERSION },
    stateDirectory,
    cacheDirectory,
    start: options.servers ?? 'all',
    // A command that can show no question declines them all: nobody would come to answer what is parked.
    ...(options.handlers === undefined
      ? { trust: { approvals: 'never', fullAccess: false } as const }
      : { handlers: options.handlers }),
    closeGraceMs: CLOSE_GRACE_MS,
    signal: context.signal,
  })
}

/** Waits until the servers have settled or --wait is over, and says on a terminal who is awaited. */
export async function settle(context: CommandContext, host: Host, servers?: readonly string[]): Promise<void> {
  const hide = showWaiting(host, context.terminal)
  try {
    await host.whenSettled({
      waitMs: context.options.wait,
      signal: context.signal,
      ...(servers === undefined ? {} : { servers }),
    })
  } finally {
    hide()
  }
}

/** The servers a listing is about, all of them settled or out of time. */
export interface View extends AsyncDisposable {
  readonly binding: Binding
  /** The wanted servers only. */
  readonly statuses: readonly ServerStatus[]
  /** Those of `statuses` that are enabled and cannot answer. */
  readonly absent: readonly ServerStatus[]
  /** The names given with --server; undefined when there were none. */
  readonly servers: readonly string[] | undefined
  /** Are the tools of this server listed? Not with another --server, nor when its entry keeps them from the command. */
  showsToolsOf(server: string): boolean
  /** The exit code of a listing; `failureCount` servers answered, but not this question. */
  exitCode(failureCount?: number): ExitCode
}

/**
 * Starts the servers of --server, or all, and waits for them. Hold it with `await using`.
 * @throws {CommandError} for an unknown name (exit code 2) or a file of --config that cannot be used (4).
 */
export async function openView(context: CommandContext): Promise<View> {
  const { options, signal } = context
  const servers = options.server.length > 0 ? options.server : undefined
  const loaded = await readConfiguration(context, servers)
  requireServers(options.server, loaded)
  const host = await openHost(context, loaded, servers === undefined ? {} : { servers })
  try {
    await settle(context, host, servers)
    const settled = host.statuses
    const binding = await host.bind({ grace: 'none', signal })
    const isWanted = (name: string): boolean => servers === undefined || servers.includes(name)
    const statuses = latest(settled, binding.statuses).filter(({ name }) => isWanted(name))
    const absent = absentServers(statuses)
    const hidden = new Set(
      loaded.definitions.filter((one) => one.omitToolsFrom.includes('command')).map((one) => one.name),
    )
    const isPartial = (failureCount: number): boolean => options.strict && absent.length + failureCount > 0
    return {
      ...{ binding, statuses, absent, servers },
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
