// Signs a person in with a code that they enter in a browser of any device (RFC 8628). Nothing listens here; the authorization server is asked again and again.
import { cleanLine } from '../../base/index.ts'
import type { Grant } from '../grant.ts'
import { ask, withDeadline } from './asking.ts'
import { askForScopes, CLIENT_NAME, grantOf, scopesFor } from './attempt.ts'
import { clientAuthentication, formEncode } from './client-authentication.ts'
import { readDeviceAnswer } from './device-answer.ts'
import { decidePoll, type PollReply } from './device-poll.ts'
import { discover } from './discovery.ts'
import type { ClientInUse, Discovery, SignInOptions } from './flow.ts'
import type { OAuthAnswer, OAuthPort } from './port.ts'
import { obtainClient, planClient } from './registration.ts'
import type { ScopePlan } from './scopes.ts'
import { SignInError } from './sign-in-error.ts'
import { readTokens } from './token-answer.ts'

/** What a person needs to sign in somewhere else. */
export interface DeviceCode {
  /** To be compared or typed, as the authorization server writes it. */
  readonly userCode: string
  /** Where to enter it. */
  readonly url: string
  /** The same page with the code filled in; to be opened, or shown as a QR code beside the code. */
  readonly urlComplete?: string
  /** Milliseconds of the epoch. */
  readonly expiresAtMs: number
}

/** How somebody signs in with a code. */
export interface DeviceSignInOptions extends Omit<SignInOptions, 'openPage' | 'onPage' | 'paste' | 'onPasteRefused'> {
  /** Shows the code. A throw ends the sign-in: nobody else has it. */
  onCode(code: DeviceCode): void
  /** For the person, in milliseconds. Default, and at most: as long as the code lives. */
  readonly timeoutMs?: number | undefined
}

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'
/** Never used: many authorization servers register nobody without one. */
const REDIRECT_URL = 'http://127.0.0.1/callback'
const TIMEOUT_MS_MIN = 1_000

/**
 * Lets a person sign in with a code, and brings back what that gave. Nothing is kept anywhere; nothing is left running, however it ends.
 * @throws {SignInError} as `signIn`; `timed-out` when the code has lived its life; `metadata-invalid` where codes are not offered.
 */
export async function signInWithCode(options: DeviceSignInOptions): Promise<Grant> {
  const { server, port, signal } = options
  const discovery = await discover({ server, challenge: options.challenge, use: 'token', port, signal })
  const endpoint = discovery.deviceAuthorizationEndpoint
  if (endpoint === undefined)
    throw new SignInError(
      'metadata-invalid',
      `${discovery.issuer.issuer} does not offer to sign in with a code ("device_authorization_endpoint"): sign in with a browser`,
      { field: 'device_authorization_endpoint' },
    )
  if (discovery.wantsDpop || (options.dpop ?? server.oauth?.dpop) === 'always')
    throw new SignInError(
      'settings-invalid',
      `"${server.name}" takes tokens that are bound to a key, and a sign-in with a code has none: sign in with a browser`,
      { field: 'dpop' },
    )
  const scopes = scopesFor(discovery, options)
  return new Attempt(options, { discovery, endpoint }).run(scopes)
}

interface AttemptFacts {
  readonly discovery: Discovery
  readonly endpoint: string
}

/** A code that waits for its person. */
interface Pending {
  readonly deviceCode: string
  readonly code: DeviceCode
  readonly lifeMs: number
  readonly intervalMs: number
  readonly inUse: ClientInUse
  readonly scopes: readonly string[]
}

class Attempt {
  readonly #options: DeviceSignInOptions
  readonly #facts: AttemptFacts

  constructor(options: DeviceSignInOptions, facts: AttemptFacts) {
    this.#options = options
    this.#facts = facts
  }

  async run(scopes: ScopePlan): Promise<Grant> {
    const pending = await askForScopes(
      scopes,
      (asked) => this.#request(asked),
      () => this.#options.onScopesDropped?.(),
    )
    this.#show(pending.code)
    const { port, signal, timeoutMs = pending.lifeMs, server } = this.#options
    const limitMs = Math.min(Math.max(timeoutMs, TIMEOUT_MS_MIN), pending.lifeMs)
    return withDeadline({ port, signal, timeoutMs: limitMs }, `The sign-in to "${server.name}" with a code`, (inner) =>
      this.#poll(pending, inner),
    )
  }

  async #request(scopes: readonly string[]): Promise<Pending> {
    const { endpoint, discovery } = this.#facts
    const inUse = await this.#client(scopes)
    const askedAtMs = this.#options.port.dateMs()
    const { status, body } = await this.#post(
      { url: endpoint, field: 'device_authorization_endpoint', inUse },
      { resource: discovery.resource, ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }) },
    )
    const question = { endpoint, addresses: discovery.addresses, secrets: secretsOf(inUse) }
    const answer = readDeviceAnswer(status, body, question)
    const { deviceCode, userCode, url, urlComplete, lifeMs, intervalMs } = answer
    const code = {
      userCode,
      url,
      ...(urlComplete === undefined ? {} : { urlComplete }),
      expiresAtMs: askedAtMs + lifeMs,
    }
    return { deviceCode, code, lifeMs, intervalMs, inUse, scopes }
  }

  #client(scopes: readonly string[]): Promise<ClientInUse> {
    const { server, port, signal, clientMetadataUrl, clientName = CLIENT_NAME, clientSecret } = this.#options
    const { discovery } = this.#facts
    return obtainClient(planClient(discovery, { ...server.oauth, clientMetadataUrl }), {
      discovery,
      redirectUrl: REDIRECT_URL,
      grantTypes: [GRANT_TYPE],
      clientName,
      scopes,
      clientSecret,
      ca: server.ca,
      port,
      signal,
    })
  }

  #show(code: DeviceCode): void {
    try {
      this.#options.onCode(code)
    } catch (cause) {
      const why = cause instanceof Error ? cleanLine(cause.message) : 'its callback threw'
      throw new SignInError('settings-invalid', `The code could not be shown: ${why}`, { cause })
    }
  }

  /** Waits first: nobody is faster than the first pause. */
  async #poll(pending: Pending, signal: AbortSignal): Promise<Grant> {
    const { port } = this.#options
    const endpoint = this.#facts.discovery.issuer.tokenEndpoint
    const secrets = [...secretsOf(pending.inUse), pending.deviceCode, formEncode(pending.deviceCode)]
    let { intervalMs } = pending
    for (;;) {
      await pause(port, intervalMs, signal)
      const askedAtMs = port.dateMs()
      const reply = await this.#ask(pending, signal)
      const step = decidePoll(reply, { intervalMs, endpoint, secrets })
      switch (step.kind) {
        case 'wait':
          intervalMs = step.intervalMs
          break
        case 'refused':
          throw step.error
        case 'tokens': {
          const reading = readTokens(step.status, step.body, { endpoint, askedAtMs, isBound: false, secrets })
          return grantOf(this.#facts.discovery, { client: pending.inUse.client, scopes: pending.scopes, ...reading })
        }
      }
    }
  }

  async #ask({ deviceCode, inUse }: Pending, signal: AbortSignal): Promise<PollReply> {
    const { issuer, resource } = this.#facts.discovery
    try {
      const { status, body } = await this.#post(
        { url: issuer.tokenEndpoint, field: 'token_endpoint', inUse, signal },
        { grant_type: GRANT_TYPE, device_code: deviceCode, resource },
      )
      return { kind: 'answered', status, body }
    } catch (error) {
      if (error instanceof SignInError) return { kind: 'failed', error }
      throw error
    }
  }

  async #post(
    to: {
      readonly url: string
      readonly field: string
      readonly inUse: ClientInUse
      readonly signal?: AbortSignal | undefined
    },
    form: Readonly<Record<string, string>>,
  ): Promise<OAuthAnswer> {
    const { port, server, signal = to.signal } = this.#options
    const { discovery } = this.#facts
    const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' })
    const parameters = new URLSearchParams(form)
    await clientAuthentication(to.inUse, discovery.issuer)(headers, parameters, to.url)
    const stop = to.signal ?? signal
    return ask(port, to.url, {
      method: 'POST',
      headers: Object.fromEntries(headers),
      body: parameters.toString(),
      addresses: discovery.addresses,
      field: to.field,
      ...(server.ca === undefined ? {} : { ca: server.ca }),
      ...(stop === undefined ? {} : { signal: stop }),
    })
  }
}

/** Nothing of these is shown, whoever repeats them. */
function secretsOf({ secret }: ClientInUse): string[] {
  return secret === undefined ? [] : [secret, formEncode(secret)]
}

/** Rejects soon after the abort, and leaves no timer. */
function pause(port: OAuthPort, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      port.clearTimer(timer)
      reject(signal.reason)
    }
    const timer = port.setTimer(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
