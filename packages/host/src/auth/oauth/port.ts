// What the protocol of sign-ins needs of the world. The composition root fills it in; nothing here reaches the network by itself.

/** One request to an origin, its whole answer in memory, through the one door out. */
export interface OAuthRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Which addresses may be connected to, as looked up for this request. */
  readonly addresses: 'public' | 'public-or-loopback' | 'any'
  /** Certificates to trust besides the usual ones, PEM. */
  readonly ca?: string
  /** Bytes of the answer. */
  readonly answerBytesMax: number
  /** From the call to the last byte. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/** Any status is an answer. */
export interface OAuthAnswer {
  readonly status: number
  /** One header by its name in lower case. */
  header(name: string): string | undefined
  readonly body: Buffer
}

/** How sign-ins reach the world. */
export interface OAuthPort {
  /**
   * https only, but http to this machine; never follows a redirect.
   * @throws an error with `code` (`refused`, `unreachable`, `closed`, `malformed`, `too-large`, `timed-out`, `cancelled`) and `details.sent`: may the server have seen it?
   */
  fetch(url: string, request: OAuthRequest): Promise<OAuthAnswer>
  /** Where a host name or address literal leads now; `unknown`: nowhere that can be told. Several addresses count as the most private of them. */
  reach(host: string): Promise<'public' | 'loopback' | 'private' | 'unknown'>
  /** Milliseconds of the epoch. */
  dateMs(): number
  setTimer(callback: () => void, ms: number): object
  clearTimer(timer: object | undefined): void
  /** Cryptographically strong. */
  randomBytes(count: number): Buffer
}
