// How sign-ins reach the world: through the one door out. Part of the composition root.
import type { OAuthPort } from './auth/index.ts'
import { fetchAnswer, type Platform, reachOf } from './protocol/index.ts'

/** @param proxy As the `proxy` of a connection. Default `environment`. */
export function oauthPort(platform: Platform, { proxy }: { readonly proxy?: string } = {}): OAuthPort {
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
