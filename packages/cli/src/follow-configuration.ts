// Applies what changes in the configuration files while `convoke serve` runs, and says what became of each server.
import { isDeepStrictEqual } from 'node:util'
import {
  cleanLine,
  type Host,
  HostError,
  type LoadedConfig,
  loadConfig,
  type PlannedServer,
  type ServerDefinition,
} from '@convoke/host'
import { configFiles, tellProblems } from './configuration.ts'
import { type CommandContext, JSON_VERSION } from './context.ts'
import { planReason } from './plan-text.ts'
import { styled } from './terminal.ts'
import { FileWatch } from './watch-files.ts'

/** What is followed, and for whom. */
export interface FollowOptions {
  readonly context: CommandContext
  readonly host: Host
  /** Names to serve; empty: all. */
  readonly wanted: readonly string[]
  /** The sample servers are served: until a file is there nothing takes their place. */
  readonly isSample: boolean
  /** The files that were looked for. */
  readonly files: LoadedConfig['files']
  /** Over stdio stdout belongs to the protocol. */
  readonly hasDataOutput: boolean
}

/** Follows the files until it is disposed. The environment stays that of the start. */
export function followConfiguration(options: FollowOptions): AsyncDisposable {
  const follower = new Follower(options)
  return new FileWatch(
    options.files.map(({ path }) => path),
    () => follower.look(),
  )
}

class Follower {
  readonly #options: FollowOptions
  #applied: readonly ServerDefinition[]
  #toldFault = ''
  #isSample: boolean

  constructor(options: FollowOptions) {
    this.#options = options
    this.#applied = options.host.definitions
    this.#isSample = options.isSample
  }

  /** Never rejects: what cannot be applied is told, and what runs goes on. */
  async look(): Promise<void> {
    const { context } = this.#options
    try {
      const loaded = await loadConfig({ files: configFiles(context), env: context.env })
      const fault = loaded.problems.find(({ severity, server }) => severity === 'error' && server === undefined)
      if (fault !== undefined) return this.#refuse(fault.message)
      this.#toldFault = ''
      await this.#apply(loaded)
    } catch (error) {
      if (HostError.is(error, 'HOST_CLOSED')) return
      this.#refuse(error instanceof Error ? error.message : String(error))
    }
  }

  /** A file that cannot be read as a whole changes nothing. The same fault is told once. */
  #refuse(message: string): void {
    if (message === this.#toldFault) return
    this.#toldFault = message
    const { terminal } = this.#options.context
    terminal.notice(styled('red', 'error: '), message)
    terminal.notice('The configuration was not applied; what runs goes on as it is.')
  }

  async #apply(loaded: LoadedConfig): Promise<void> {
    const { context, host, wanted } = this.#options
    if (this.#isSample && loaded.files.every(({ found }) => !found)) return
    this.#isSample = false
    const definitions = loaded.definitions.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
    if (isDeepStrictEqual(definitions, this.#applied)) return
    const before = new Set(this.#applied.map(({ name }) => name))
    const rows = await host.configure(definitions, { signal: context.signal })
    this.#applied = definitions
    tellProblems(context, loaded.problems)
    this.#tell(
      rows.filter((row) => !isAsBefore(row, before)),
      definitions,
    )
  }

  #tell(rows: readonly PlannedServer[], definitions: readonly ServerDefinition[]): void {
    const { context, hasDataOutput } = this.#options
    const { options, terminal } = context
    if (rows.length === 0) return
    if (options.json && hasDataOutput)
      return terminal.json({ version: JSON_VERSION, event: 'configured', servers: rows })
    terminal.notice('The configuration has changed:')
    for (const row of rows) {
      const definition = definitions.find(({ name }) => name === row.server)
      terminal.notice('  ', styled('bold', cleanLine(row.server)), ` ${row.action}: ${planReason(row, definition)}`)
    }
  }
}

/** Nothing that anybody would notice. */
function isAsBefore({ server, action, changed }: PlannedServer, before: ReadonlySet<string>): boolean {
  const isKept = action === 'reuse' || action === 'adopt' || action === 'keep-auth-failure' || action === 'hold'
  return isKept && changed.length === 0 && before.has(server)
}
