// One attempt to start a server, and the session that came of it: everything it opens is closed with it.
import { HostError, type JsonObject, Scope } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import {
  type Authorization,
  hostErrorOf,
  type Introduction,
  openServer,
  type ProtocolSettings,
  packageRunnerOf,
  type ServerSession,
  StartupBudget,
  startFailure,
} from '../protocol/index.ts'
import type { CatalogSink } from './catalog-sink.ts'

/** What an attempt is made of, and whom it tells what. */
export interface AttemptOptions {
  readonly definition: ServerDefinition
  readonly settings: ProtocolSettings
  readonly authorization: Authorization | undefined
  readonly sink: CatalogSink
  /** Why it cannot even be tried; nothing is opened then. */
  readonly refusal?: HostError | undefined
  /** Over what the settings say. */
  readonly introduction?: Introduction | undefined
  onInstalling(): void
  onInstalled(): void
  /** The attempt has failed; told once, at once, while what is left of it is still being closed. */
  onFailed(failure: HostError): void
  /** The handshake is over; nothing has been listed yet. */
  onGreeted(session: ServerSession): void
  onOpened(session: ServerSession): void
  /** The server has forgotten the session after it had been opened. `onRenewed` or `onLost` follows. */
  onSessionLost(): void
  /** There is a new session, and its catalog has been listed. */
  onRenewed(session: ServerSession): void
  /** The session is over after it had been opened, and nobody here closed it. */
  onLost(failure: HostError): void
  /** `session` is undefined for what comes before the handshake is over. */
  onNotification(session: ServerSession | undefined, method: string, params: JsonObject): void
  onNoise(text: string): void
  /** Told before anything is started: values that must not show up in texts about this server. */
  onResolved(secrets: readonly string[]): void
}

/** One start of one server. It begins when it is made, and ends with `close`. */
export class Attempt {
  readonly #options: AttemptOptions
  readonly #scope = new Scope()
  readonly #done: Promise<void>
  #budget: StartupBudget | undefined
  #session: ServerSession | undefined
  #hasFailed = false
  /** Whose credentials go along. */
  credentials: 'none' | 'configured' | 'sign-in' = 'none'

  /** @param before What has to be over before anything is started. */
  constructor(options: AttemptOptions, before: Promise<void>) {
    this.#options = options
    this.#done = before.then(() => this.#run()).catch((error: unknown) => this.#fail(error))
  }

  /** The session, once there is one. */
  get session(): ServerSession | undefined {
    return this.#session
  }

  /** Ends the attempt or the session. Resolves when nothing is left of it. */
  async close(why: string): Promise<void> {
    this.#hasFailed = true // whatever comes now was asked for
    this.#budget?.cancel(why)
    await this.#scope.close()
    await this.#done
  }

  async #run(): Promise<void> {
    if (this.#scope.isClosed) return
    const { definition, sink, refusal } = this.#options
    if (refusal !== undefined) throw refusal
    sink.begin?.()
    const budget = await this.#startClock()
    try {
      budget.waitingFor = definition.transport.kind === 'stdio' ? 'the handshake' : 'the first request'
      const session = await this.#open(budget)
      budget.waitingFor = 'tools/list'
      this.#options.onGreeted(session)
      await sink.load(session, { signal: budget.signal, timeoutMs: budget.leftMs })
      if (this.#scope.isClosed) return
      this.#options.onOpened(session)
      void session.closed.then((end) => this.#lost(end))
      sink.watch(session)
    } catch (error) {
      throw HostError.is(error) ? startFailure(error, budget) : error
    } finally {
      budget.stop()
    }
  }

  /** Whoever uses the new session finds the catalog that belongs to it. */
  async #renewed(): Promise<void> {
    const session = this.#session
    if (session === undefined || this.#scope.isClosed) return
    const { definition, sink } = this.#options
    sink.begin?.()
    this.#options.onGreeted(session)
    await sink.load(session, { timeoutMs: definition.startupTimeoutMs })
    if (!this.#hasFailed) this.#options.onRenewed(session)
  }

  #notRenewed(error: unknown): void {
    const { definition } = this.#options
    if (this.#hasFailed) return
    this.#hasFailed = true
    const why = hostErrorOf(error, definition.name, this.#session?.secrets)
    this.#options.onLost(
      why.code === 'CONNECTION_LOST' || why.code === 'CALL_TIMEOUT' ? notRenewed(definition.name, why) : why,
    )
  }

  async #startClock(): Promise<StartupBudget> {
    const { definition, settings } = this.#options
    const { transport, name, startupTimeoutMs, installTimeoutMs } = definition
    const runner = transport.kind === 'stdio' ? packageRunnerOf(transport.command, transport.args) : undefined
    const mayInstall = runner !== undefined && (await settings.memory.recall(definition)) === undefined
    const budget = new StartupBudget({
      server: name,
      platform: settings.platform,
      startupTimeoutMs,
      ...(mayInstall ? { installTimeoutMs, runner } : {}),
      onInstalled: () => this.#options.onInstalled(),
    })
    this.#budget = budget
    if (this.#scope.isClosed) budget.cancel('the start was cancelled')
    if (mayInstall) this.#options.onInstalling()
    return budget
  }

  async #open(budget: StartupBudget): Promise<ServerSession> {
    const { definition, settings, authorization } = this.#options
    const session = await openServer({
      definition,
      settings,
      budget,
      authorization,
      ...(this.#options.introduction === undefined ? {} : { introduction: this.#options.introduction }),
      renewal: {
        onLost: () => this.#options.onSessionLost(),
        onOpened: () => this.#renewed(),
        onFailed: (error) => this.#notRenewed(error),
      },
      onResolved: ({ secrets, credentials }) => {
        this.#options.onResolved(secrets)
        this.credentials = credentials
      },
      onNotification: (method, params) => this.#options.onNotification(this.#session, method, params),
      onNoise: (text) => this.#options.onNoise(text),
      onFailing: (failure) => this.#fail(failure),
    })
    this.#session = session
    // Closed here and awaited: a session that arrives after the end must not outlive it.
    if (this.#scope.isClosed) await session.close()
    else this.#scope.use(session)
    return session
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    const { definition } = this.#options
    this.#options.onFailed(
      HostError.is(error)
        ? error
        : new HostError('INTERNAL', `Server "${definition.name}": ${String(error)}`, { cause: error }),
    )
  }

  #lost(end: Awaited<ServerSession['closed']>): void {
    const { definition, sink } = this.#options
    if (this.#session !== undefined) sink.lost(this.#session)
    if (end.cause === 'local' || this.#hasFailed) return
    this.#hasFailed = true
    const { message, exitCode, signal } = end
    const code = end.cause === 'process-exited' ? 'SERVER_EXITED' : 'CONNECTION_LOST'
    this.#options.onLost(
      new HostError(code, `Server "${definition.name}": ${message}`, {
        details: {
          ...(exitCode === undefined ? {} : { exitCode }),
          ...(signal === undefined ? {} : { signal }),
        },
      }),
    )
  }
}

function notRenewed(server: string, cause: HostError): HostError {
  return new HostError(
    'CONNECTION_LOST',
    `Server "${server}" has forgotten the session, and a new one could not be made: ${cause.message}`,
    {
      details: cause.details,
      cause,
    },
  )
}
