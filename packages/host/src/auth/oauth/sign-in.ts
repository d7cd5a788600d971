// Signs a person in at the authorization server of one MCP server. Everything that the attempt depends on is fixed before the browser opens.
import type { Grant } from '../grant.ts'
import { withDeadline } from './asking.ts'
import { askForScopes, bindingKey, CLIENT_NAME, grantOf, scopesFor } from './attempt.ts'
import { type Callback, type CallbackPlan, openCallback, planCallback } from './callback.ts'
import { type CallbackAnswer, isFromIssuer, readPasted } from './callback-answer.ts'
import { clientAuthentication } from './client-authentication.ts'
import { discover } from './discovery.ts'
import { type DpopKey, openDpop } from './dpop.ts'
import { placeOf } from './endpoints.ts'
import type { ClientInUse, Discovery, SignInOptions } from './flow.ts'
import { obtainClient, planClient, sdkMetadata } from './registration.ts'
import type { ScopePlan } from './scopes.ts'
import { exchange, loadSdk } from './sdk.ts'
import { SignInError } from './sign-in-error.ts'
import { describeRefusal, readTokens, refusalError } from './token-answer.ts'

const PERSON_TIMEOUT_MS = 300_000
const PERSON_TIMEOUT_MS_MIN = 1_000
const STATE_BYTES = 32

/**
 * Lets a person sign in, and brings back what that gave. Nothing is kept anywhere; nothing is left running, however it ends.
 * @throws {SignInError} of every kind; `cancelled` soon after the abort.
 */
export async function signIn(options: SignInOptions): Promise<Grant> {
  const { server, port, signal } = options
  const discovery = await discover({ server, challenge: options.challenge, port, signal })
  const plan = planCallback(server.url, server.oauth ?? {})
  if (plan.bind === undefined && options.paste === undefined)
    throw new SignInError(
      'callback-unavailable',
      `The browser comes back to ${placeOf(plan.url)} (oauth.callbackUrl), where this program does not listen: paste what it ends at, or leave the setting out`,
      { field: 'oauth.callbackUrl' },
    )
  const scopes = scopesFor(discovery, options)
  const key = await bindingKey(discovery, options)
  const lines = options.paste?.[Symbol.asyncIterator]()
  const callback = await openIfPossible(plan)
  try {
    const attempt = new Attempt(options, { discovery, plan, callback, key, lines })
    return await attempt.run(scopes)
  } finally {
    await callback?.close()
    // A source that hangs in its next line is not waited for.
    void Promise.resolve(lines?.return?.()).catch(() => {})
  }
}

function openIfPossible({ bind, url }: CallbackPlan): Promise<Callback | undefined> {
  return bind === undefined ? Promise.resolve(undefined) : openCallback({ bind, url })
}

interface AttemptFacts {
  readonly discovery: Discovery
  readonly plan: CallbackPlan
  readonly callback: Callback | undefined
  readonly key: DpopKey | undefined
  readonly lines: AsyncIterator<string> | undefined
}

/** What is fixed when the page is shown. */
interface Authorization {
  readonly url: string
  readonly state: string
  readonly verifier: string
}

class Attempt {
  readonly #options: SignInOptions
  readonly #facts: AttemptFacts
  readonly #redirectUrl: string
  /** Asked for, and not yet looked at. */
  #line: Promise<IteratorResult<string>> | undefined

  constructor(options: SignInOptions, facts: AttemptFacts) {
    this.#options = options
    this.#facts = facts
    this.#redirectUrl = facts.callback?.redirectUrl ?? facts.plan.url
  }

  run(scopes: ScopePlan): Promise<Grant> {
    return askForScopes(
      scopes,
      (asked) => this.#once(asked),
      () => this.#options.onScopesDropped?.(),
    )
  }

  async #once(scopes: readonly string[]): Promise<Grant> {
    const inUse = await this.#client(scopes)
    const authorization = await this.#authorize(inUse, scopes)
    const answer = await this.#answerTo(authorization)
    const code = this.#codeOf(answer, authorization)
    return this.#redeem(code, { inUse, authorization, scopes, iss: answer.iss })
  }

  #client(scopes: readonly string[]): Promise<ClientInUse> {
    const { server, port, signal, clientMetadataUrl, clientName = CLIENT_NAME, clientSecret } = this.#options
    const { discovery } = this.#facts
    const plan = planClient(discovery, { ...server.oauth, clientMetadataUrl })
    const { ca } = server
    return obtainClient(plan, {
      discovery,
      redirectUrl: this.#redirectUrl,
      clientName,
      scopes,
      clientSecret,
      ca,
      port,
      signal,
    })
  }

  async #authorize({ client }: ClientInUse, scopes: readonly string[]): Promise<Authorization> {
    const { startAuthorization } = await loadSdk()
    const { discovery, key } = this.#facts
    const state = this.#options.port.randomBytes(STATE_BYTES).toString('base64url')
    const { authorizationUrl, codeVerifier: verifier } = await startAuthorization(discovery.issuer.issuer, {
      metadata: sdkMetadata(discovery),
      clientInformation: { client_id: client.id },
      redirectUrl: this.#redirectUrl,
      state,
      resource: discovery.resource,
      ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    })
    // The code is bound to the key as well (RFC 9449, 10).
    if (key !== undefined) authorizationUrl.searchParams.set('dpop_jkt', (await openDpop(key)).thumbprint)
    return { url: authorizationUrl.href, state, verifier }
  }

  /** Whichever comes first: the browser, or a line that somebody pasted. */
  #answerTo({ url, state }: Authorization): Promise<CallbackAnswer> {
    const { port, signal, timeoutMs = PERSON_TIMEOUT_MS } = this.#options
    const limitMs = Math.max(timeoutMs, PERSON_TIMEOUT_MS_MIN)
    const what = `The sign-in to "${this.#options.server.name}" in the browser`
    return withDeadline({ port, signal, timeoutMs: limitMs }, what, async (inner) => {
      // Listening comes first: a browser may be faster than we are.
      const ways: Promise<CallbackAnswer>[] = []
      if (this.#facts.callback !== undefined) ways.push(this.#facts.callback.receive(state))
      if (this.#facts.lines !== undefined) ways.push(this.#pasted(this.#facts.lines, { state, signal: inner }))
      const first = Promise.race(ways)
      this.#show(url)
      return await first
    })
  }

  #show(url: string): void {
    const { onPage, openPage } = this.#options
    // A page that cannot be shown or opened ends nothing: the person may have the address, and can open it by hand.
    const page = { url, redirectUrl: this.#redirectUrl, listens: this.#facts.callback !== undefined }
    void Promise.resolve()
      .then(() => onPage?.(page))
      .catch(() => {})
      .then(() => openPage?.(url))
      .catch(() => {})
  }

  async #pasted(
    lines: AsyncIterator<string>,
    { state, signal }: { readonly state: string; readonly signal: AbortSignal },
  ): Promise<CallbackAnswer> {
    for (;;) {
      this.#line ??= lines.next()
      const { value, done } = await this.#line
      // It is left for the attempt that has taken our place.
      if (signal.aborted) return new Promise(() => {})
      this.#line = undefined
      if (done === true) break
      if (value.trim() === '') continue
      const reading = readPasted(value, this.#redirectUrl, state)
      if (reading.kind !== 'stray') return reading
      this.#options.onPasteRefused?.(reading.because)
    }
    // Nothing more will be pasted; the browser may still come.
    if (this.#facts.callback !== undefined) return new Promise(() => {})
    throw new SignInError('state-mismatch', 'Nothing that was pasted belongs to this sign-in')
  }

  /** @throws {SignInError} `issuer-mismatch`, `provider-refused`, `scope-refused` */
  #codeOf(answer: CallbackAnswer, { state, verifier }: Authorization): string {
    const { issuer, promisesIssuer, authorizationEndpoint } = this.#facts.discovery
    if (!isFromIssuer(answer.iss, { issuer: issuer.issuer, promisesIssuer }))
      throw new SignInError(
        'issuer-mismatch',
        `The browser came back from another authorization server than ${placeOf(issuer.issuer)}: nothing of its answer is used`,
        { field: 'iss' },
      )
    if (answer.kind === 'code') return answer.code
    throw refusalError(describeRefusal(answer.error, answer.description, [state, verifier]), authorizationEndpoint)
  }

  async #redeem(code: string, { inUse, authorization, scopes, iss }: RedeemFacts): Promise<Grant> {
    const { port, signal, server } = this.#options
    const { discovery, key } = this.#facts
    const { exchangeAuthorization } = await loadSdk()
    const dpop = key === undefined ? undefined : await openDpop(key)
    const askedAtMs = port.dateMs()
    const { reply, secrets } = await exchange(
      { port, signal, ca: server.ca, addresses: discovery.addresses, field: 'token_endpoint' },
      (fetchFn) =>
        exchangeAuthorization(discovery.issuer.issuer, {
          metadata: sdkMetadata(discovery),
          clientInformation: { client_id: inUse.client.id },
          authorizationCode: code,
          codeVerifier: authorization.verifier,
          redirectUri: this.#redirectUrl,
          resource: discovery.resource,
          addClientAuthentication: clientAuthentication(inUse, discovery.issuer),
          ...(iss === undefined ? {} : { iss }),
          ...(dpop === undefined ? {} : { dpop: dpop.session }),
          fetchFn,
        }),
    )
    if (reply.kind === 'failed') throw reply.error
    const { tokens, subject } = readTokens(reply.status, reply.body, {
      endpoint: discovery.issuer.tokenEndpoint,
      askedAtMs,
      isBound: key !== undefined,
      secrets: [...secrets, code, authorization.state, authorization.verifier],
    })
    return grantOf(discovery, { client: inUse.client, tokens, scopes, subject, key })
  }
}

interface RedeemFacts {
  readonly inUse: ClientInUse
  readonly authorization: Authorization
  readonly scopes: readonly string[]
  readonly iss: string | undefined
}
