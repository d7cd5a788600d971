// Notices, while `convoke serve` runs, that somebody has signed in or out with another program, and connects what that concerns anew.
import { join } from 'node:path'
import { cleanLine, type Host, HostError, type HostEvent, type SignInStatus } from '@convoke/host'
import { placesOf } from './configuration.ts'
import { type CommandContext, JSON_VERSION } from './context.ts'
import { shellOperand } from './shell-word.ts'
import { subjectText } from './sign-in-here.ts'
import { signInSettings } from './sign-in-settings.ts'
import { styled } from './terminal.ts'
import { FileWatch } from './watch-files.ts'

/** What is followed, and for whom. */
export interface FollowSignInsOptions {
  readonly context: CommandContext
  readonly host: Host
  /** Over stdio stdout belongs to the protocol. */
  readonly hasDataOutput: boolean
}

/** Follows the sign-ins until it is disposed. */
export async function followSignIns(options: FollowSignInsOptions): Promise<AsyncDisposable> {
  const { context, host } = options
  const { directory } = signInSettings(context, await placesOf(context))
  const follower = new Follower(options)
  const unsubscribe = host.subscribe((event) => follower.onEvent(event))
  // Which sign-in belongs to which server is noted there, and nothing else: tokens that are renewed change nothing in it.
  const watch = new FileWatch([join(directory, 'index')], () => follower.look())
  return {
    async [Symbol.asyncDispose]() {
      unsubscribe()
      await watch[Symbol.asyncDispose]()
    },
  }
}

/** What became of a sign-in, as it is told. */
export interface SignInNews {
  readonly server: string
  readonly change: 'signed-in' | 'signed-out' | 'ended'
  readonly subject?: SignInStatus['subject']
  readonly because?: string
}

/** One look at the sign-ins. */
export interface Look {
  readonly statuses: readonly SignInStatus[]
  /** When it began, in milliseconds of the epoch. */
  readonly atMs: number
}

/** Compares two looks. Pure. */
export function signInNews(before: Look, { statuses }: Pick<Look, 'statuses'>): readonly SignInNews[] {
  const known = new Map(before.statuses.map(({ server, signedInAtMs }) => [server, signedInAtMs]))
  return statuses.flatMap(({ server, signedInAtMs, subject }): SignInNews[] => {
    if (known.get(server) === signedInAtMs) return []
    if (signedInAtMs === undefined) return [{ server, change: 'signed-out' }]
    // A server that has come with the configuration may have brought an older sign-in: that is no news.
    if (!known.has(server) && signedInAtMs < before.atMs) return []
    return [{ server, change: 'signed-in', ...(subject === undefined ? {} : { subject }) }]
  })
}

class Follower {
  readonly #options: FollowSignInsOptions
  /** Never rejects. */
  #last: Promise<Look>

  constructor(options: FollowSignInsOptions) {
    this.#options = options
    // Serving does not wait for it: a keyring may take its time.
    this.#last = this.#look().catch(() => ({ statuses: [], atMs: Date.now() }))
  }

  async #look(): Promise<Look> {
    const { host, context } = this.#options
    const atMs = Date.now()
    return { statuses: await host.signInStatuses({ signal: context.signal }), atMs }
  }

  /** Never rejects: who cannot be looked at now is looked at after the next change. */
  async look(): Promise<void> {
    const { host, context } = this.#options
    try {
      const before = await this.#last
      const now = await this.#look()
      const news = signInNews(before, now)
      this.#last = Promise.resolve(now)
      for (const one of news) this.#tell(one)
      if (news.length > 0) await host.refresh({ signal: context.signal })
    } catch (error) {
      if (HostError.is(error, 'HOST_CLOSED') || HostError.is(error, 'CANCELLED')) return
      context.terminal.notice(styled('red', 'error: '), error instanceof Error ? error.message : String(error))
    }
  }

  onEvent(event: HostEvent): void {
    if (event.kind !== 'sign-in.changed' || event.change !== 'ended') return
    const { server, because } = event
    this.#tell({ server, change: 'ended', ...(because === undefined ? {} : { because }) })
  }

  #tell(news: SignInNews): void {
    const { context, hasDataOutput } = this.#options
    const { options, terminal } = context
    if (options.json && hasDataOutput) return terminal.json({ version: JSON_VERSION, event: 'sign-in', ...news })
    const { server, change, because, subject } = news
    const name = styled('bold', cleanLine(server))
    const who = subjectText(subject)
    switch (change) {
      case 'signed-in':
        return terminal.notice('Signed in to ', name, ...(who === undefined ? [] : [` as ${who}`]))
      case 'signed-out':
        return terminal.notice('Signed out of ', name)
      case 'ended': {
        const why = because === undefined ? '' : `: ${cleanLine(because, 300)}`
        return terminal.notice('The sign-in to ', name, ` has ended${why}. Run: convoke login ${shellOperand(server)}`)
      }
    }
  }
}
