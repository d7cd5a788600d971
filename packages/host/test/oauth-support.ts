// For the tests of sign-ins: the real port, a port whose answers are a table, and a person who signs in.
import { nodePlatform } from '@convoke/wire'
import type { OAuthAnswer, OAuthPort, OAuthRequest } from '../src/auth/oauth/port.ts'
import { SignInError } from '../src/auth/oauth/sign-in-error.ts'
import { oauthPort } from '../src/host-oauth-port.ts'

export const TIMEOUT_MS = 60_000

/** Through the real door. */
export const realPort: OAuthPort = oauthPort(nodePlatform, { proxy: 'none' })

/** What a table of answers has for one URL. */
export type Scripted = object | string | number | Error | ((request: OAuthRequest) => object | string | number)

export interface TablePort extends OAuthPort {
  /** Every URL that was asked, with its method. */
  readonly asked: readonly { readonly method: string; readonly url: string; readonly body: string | undefined }[]
}

/** Answers by URL; everything else is 404. An object is JSON, a text a page, a number a status, an error what the port fails with. */
export function tablePort(
  table: Readonly<Record<string, Scripted>>,
  reach: Readonly<Record<string, 'public' | 'loopback' | 'private' | 'unknown'>> = {},
): TablePort {
  const asked: { method: string; url: string; body: string | undefined }[] = []
  return {
    ...realPort,
    asked,
    reach: (host) => Promise.resolve(reach[host] ?? 'public'),
    async fetch(url, request): Promise<OAuthAnswer> {
      asked.push({ method: request.method ?? 'GET', url, body: request.body })
      const entry = table[url] ?? 404
      const answer = typeof entry === 'function' ? entry(request) : entry
      if (answer instanceof Error) throw answer
      const status = typeof answer === 'number' ? answer : 200
      const text = typeof answer === 'string' ? answer : JSON.stringify(answer)
      return { status, header: () => undefined, body: Buffer.from(text) }
    },
  }
}

/** What a port fails with. */
export function portError(code: string, sent = false): Error {
  return Object.assign(new Error(`the port says ${code}`), { code, details: { sent } })
}

/** The kind that it failed with, or what it gave instead. */
export async function kindOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => ({ resolved: value }),
    (error: unknown) => (error instanceof SignInError ? error.kind : error),
  )
}

/** The error that it failed with. */
export async function failureOf(promise: Promise<unknown>): Promise<SignInError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof SignInError) return error
  throw new Error('It did not fail as a sign-in does', { cause: error })
}
