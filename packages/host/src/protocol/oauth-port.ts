// How sign-ins reach the world: through the one door out.
import { fetchAnswer, type Platform, reachOf, type TimerHandle } from '@convoke/wire'

interface PortRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly addresses: 'public' | 'public-or-loopback' | 'any'
  readonly ca?: string
  readonly answerBytesMax: number
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

interface PortAnswer {
  readonly status: number
  header(name: string): string | undefined
  readonly body: Buffer
}

/** The port of the room `auth`, which does not know this one. */
export interface SignInPort {
  fetch(url: string, request: PortRequest): Promise<PortAnswer>
  reach(host: string): Promise<'public' | 'loopback' | 'private' | 'unknown'>
  dateMs(): number
  setTimer(callback: () => void, ms: number): TimerHandle
  clearTimer(timer: TimerHandle | undefined): void
  randomBytes(count: number): Buffer
}

/**
 * Builds it.
 * @param proxy As the `proxy` of a connection. Default `environment`.
 */
export function signInPort(platform: Platform, { proxy }: { readonly proxy?: string | undefined } = {}): SignInPort {
  return {
    fetch: (url, request) =>
      fetchAnswer(url, { ...request, platform, proxy, redirects: 'none', plainHttp: 'loopback' }),
    reach: (host) => reachOf(host, platform),
    dateMs: () => platform.dateMs(),
    setTimer: (callback, ms) => platform.setTimer(callback, ms),
    clearTimer: (timer) => platform.clearTimer(timer),
    randomBytes: (count) => platform.randomBytes(count),
  }
}
