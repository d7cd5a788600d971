// An MCP server that speaks for accounts, in a process of its own: each sees its own tools, with their connectors, and its own plugins.
import { fileURLToPath } from 'node:url'
import { type Controlled, ControlledServer } from './controlled-server.ts'
import { startServer } from './runners.ts'

/** Which family's keys are written into `_meta`: `convoke/…`, or those of Codex. */
export type AppsFamily = 'convoke' | 'codex'

/** A tool of a connector. It answers with the name of its account, and with what it was sent. */
export interface AppsTool {
  /** Id of the connector; also its name unless `connectorName` says otherwise. */
  readonly connector: string
  readonly action: string
  readonly connectorName?: string
  readonly connectorDescription?: string
  /** Default `Run ACTION in CONNECTOR.` */
  readonly description?: string
  /** The raw name. Default `CONNECTOR_ACTION`. */
  readonly name?: string
  /** Default `codex`. */
  readonly family?: AppsFamily
  /** Default `{ readOnlyHint: true }`. */
  readonly annotations?: Readonly<Record<string, unknown>>
  /** Laid over the `_meta` that is made of the rest. Default none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A plugin of an account. */
export interface AppsPlugin {
  readonly id: string
  readonly displayName: string
  /** Default `1.0.0`. */
  readonly version?: string
  /** Default true. */
  readonly enabled?: boolean
  readonly connectorIds?: readonly string[]
  readonly mcpServers?: Readonly<Record<string, unknown>>
  readonly bundleUri?: string
  /** Default `convoke`. */
  readonly family?: AppsFamily
  /** Laid over the resource that is made of the rest, for listings that are wrong. Default none. */
  readonly resource?: Readonly<Record<string, unknown>>
}

/** What one account has. */
export interface AppsAccount {
  /** Bearer tokens that speak for it. Default `token-ID`. */
  readonly tokens?: readonly string[]
  readonly tools?: readonly AppsTool[]
  readonly plugins?: readonly AppsPlugin[]
}

/** How one method is served: at once, not before it is served again, with an error, or not at all (`method not found`). */
export type AppsService = 'serve' | 'pause' | 'error' | 'absent'

/** What can be changed while it runs. What is not named in a call of `set` stays; `undefined` goes back to the default. */
export interface AppsServerKnobs {
  /** All of them, by id. Connections are told of another list of tools. Default none: every token is refused. */
  readonly accounts?: Readonly<Record<string, AppsAccount>> | undefined
  /** `tools/list`. Default `serve`. */
  readonly toolListing?: AppsService | undefined
  /** `tools/call`. Default `serve`. */
  readonly toolCalls?: AppsService | undefined
  /** `resources/list`. Default `serve`. */
  readonly pluginListing?: AppsService | undefined
  /** Resources on one page. Default: all. */
  readonly pageSize?: number | undefined
  /** From this page on, counted from 1, `resources/list` is an error. Default never. */
  readonly failFromPage?: number | undefined
  /** Each page but the first names itself as the next. Default false. */
  readonly repeatCursor?: boolean | undefined
}

/** How it is started. */
export interface AppsServerOptions extends AppsServerKnobs {
  readonly port?: number
}

/** One `tools/call`, as it came. */
export interface AppsCall {
  readonly account: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** `_meta`; an empty object if there was none. */
  readonly meta: Readonly<Record<string, unknown>>
}

/** One `resources/list`, as it came. */
export interface AppsListing {
  readonly account: string
  readonly cursor: string | null
}

/** What it has seen. */
export interface AppsServerStats {
  readonly calls: readonly AppsCall[]
  readonly listings: readonly AppsListing[]
  /** By method, of requests whose token was good. */
  readonly rpc: Readonly<Record<string, number>>
  /** Requests with a token that speaks for nobody, or none. */
  readonly refused: number
  readonly sessions: number
  /** Requests that are paused. */
  readonly waiting: number
}

/** The running server. Its `url` is its MCP endpoint. */
export interface AppsServer extends Controlled<AppsServerKnobs, AppsServerStats> {
  /** What an `AccountSource` has to declare so that it may see tokens. */
  readonly origin: string
  /** Tells every connection that the list of tools is another one. */
  announceTools(): Promise<void>
  /** Forgets every session, as a server does that was restarted. */
  forgetSessions(): Promise<void>
}

const entry = fileURLToPath(new URL('../servers/apps-server.ts', import.meta.url))

/**
 * Starts it on a free loopback port. On the official SDK; sessions, of the revisions up to 2025-11-25. A request counts for the account whose bearer token it carries; without
 * one: 401.
 *
 * A tool answers with a text and with structured content: `{ account, tool, arguments, meta, resourceUri }`, where `meta` is the vendor's object of the request
 * (`_codex_apps`, or `convoke/app`) and `resourceUri` the one in it; for the tool `calendar_list_events` that is `connector://calendar/tools/calendar_list_events`.
 *
 * ```ts no-run
 * import { startAppsServer } from '@convoke/testkit'
 *
 * const tools = [{ connector: 'calendar', action: 'list_events' }]
 * await using server = await startAppsServer({ accounts: { a: { tools } } })
 * await server.set({ pluginListing: 'pause' })
 * ```
 * @throws {Error} with its stderr, if it is not ready within 30 s.
 */
export async function startAppsServer(options: AppsServerOptions = {}): Promise<AppsServer> {
  return new RunningAppsServer(await startServer([entry, JSON.stringify(options)], { closeTimeoutMs: 1_000 }))
}

class RunningAppsServer extends ControlledServer<AppsServerKnobs, AppsServerStats> implements AppsServer {
  get origin(): string {
    return new URL(this.url).origin
  }

  async announceTools(): Promise<void> {
    await this.ask('announce-tools', {})
  }

  async forgetSessions(): Promise<void> {
    await this.ask('forget-sessions', {})
  }
}
