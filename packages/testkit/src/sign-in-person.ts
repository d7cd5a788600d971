// A person with a browser, in front of the pages of the testkit's authorization server.
import type { TestAccount } from './authorization-server.ts'
import { type PlainAnswer, plainRequest } from './plain-request.ts'

export interface SignInPersonOptions {
  /** Who signs in. Default `ada`. */
  readonly account?: TestAccount
  /** What is answered on the consent page. Default `allow`. */
  readonly consent?: 'allow' | 'deny'
  /** Of the scopes that are asked for, only these are allowed. Default: all. */
  readonly scopes?: readonly string[]
  /** The page that the person leaves open: `visit` gives its address then. Default: none. */
  readonly stopAt?: 'login' | 'consent'
}

/** What a browser shows after the callback. */
export interface DeliveredPage {
  readonly status: number
  readonly body: string
  /** Where the page leads on to, if it is a redirect. */
  readonly location: string | undefined
}

export interface SignInPerson {
  /**
   * Opens an authorization URL, signs in and decides. The first redirect to another origin is the callback; it is not requested.
   * @returns its whole URL, with `code` or `error`; with `stopAt`, the URL of the page that was left open.
   * @throws {Error} with the page, where it has no form and leads nowhere.
   */
  visit(url: string): Promise<string>
  /** Requests a callback URL like a browser does. */
  deliver(url: string): Promise<DeliveredPage>
  /** Both of the above: what a browser does with an authorization URL from beginning to end. */
  signIn(url: string): Promise<DeliveredPage>
  /**
   * Enters a user code of the device flow at this authorization server.
   * @throws {Error} with the page, if the code is not accepted.
   */
  approveDevice(issuer: string, userCode: string): Promise<void>
}

const STEPS_MAX = 20

/**
 * A new person with an empty cookie jar; the same person is still signed in at the second visit.
 *
 * ```ts no-run
 * import { signInPerson } from '@convoke/testkit'
 *
 * const person = signInPerson({ account: 'grace' })
 * const callback = await person.visit('https://as.example/authorize?…')
 * console.log((await person.deliver(callback)).status)
 * ```
 */
export function signInPerson(options: SignInPersonOptions = {}): SignInPerson {
  return new Browser(options)
}

interface Page {
  readonly url: URL
  readonly answer: PlainAnswer
}

/** A redirect to another origin (or the page that is left open), or a page that leads nowhere. */
type WalkEnd = { readonly kind: 'left'; readonly url: string } | { readonly kind: 'page'; readonly page: Page }

type Step =
  | WalkEnd
  | { readonly kind: 'follow'; readonly target: URL }
  | { readonly kind: 'fill-in'; readonly target: URL; readonly fields: ReadonlyMap<string, string> }

class Browser implements SignInPerson {
  readonly #options: SignInPersonOptions
  readonly #cookies = new Map<string, string>()

  constructor(options: SignInPersonOptions) {
    this.#options = options
  }

  async visit(url: string): Promise<string> {
    const last = await this.#walk(new URL(url), {})
    if (last.kind === 'page') throw new Error(`The sign-in ended at ${last.page.url.href}: ${textOf(last.page)}`)
    return last.url
  }

  async deliver(url: string): Promise<DeliveredPage> {
    const { status, body, headers } = await plainRequest(url, { headers: { accept: 'text/html' } })
    return { status, body, location: headers.location }
  }

  async signIn(url: string): Promise<DeliveredPage> {
    return this.deliver(await this.visit(url))
  }

  async approveDevice(issuer: string, userCode: string): Promise<void> {
    const last = await this.#walk(new URL(`${issuer}/device`), { user_code: userCode })
    if (last.kind === 'page' && /success/i.test(last.page.answer.body)) return
    if (last.kind === 'page' && this.#options.consent === 'deny' && /interrupted/i.test(last.page.answer.body)) return
    throw new Error(`The device was not approved: ${last.kind === 'page' ? textOf(last.page) : last.url}`)
  }

  /** Follows redirects and fills in forms, until a redirect leaves the origin or a page has nothing (new) to fill in. */
  async #walk(start: URL, known: Readonly<Record<string, string>>): Promise<WalkEnd> {
    let page: Page = { url: start, answer: await this.#send(start) }
    for (let step = 0; step < STEPS_MAX; step++) {
      const next = nextStep(page, this.#options.stopAt)
      if (next.kind !== 'follow' && next.kind !== 'fill-in') return next
      const form = next.kind === 'fill-in' ? this.#filledIn(next.fields, known) : undefined
      page = { url: next.target, answer: await this.#send(next.target, form) }
    }
    return { kind: 'page', page }
  }

  #filledIn(fields: ReadonlyMap<string, string>, known: Readonly<Record<string, string>>): URLSearchParams {
    const { account = 'ada', consent = 'allow', scopes } = this.#options
    const answers: Readonly<Record<string, string | undefined>> = {
      ...known,
      login: account,
      decision: fields.get('prompt') === 'consent' ? consent : 'allow',
      scopes: scopes?.join(' '),
    }
    const filled = new URLSearchParams()
    for (const [name, value] of fields) {
      const answer = value || answers[name]
      if (answer !== undefined) filled.set(name, answer)
    }
    return filled
  }

  async #send(url: URL, form?: URLSearchParams): Promise<PlainAnswer> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await plainRequest(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'text/html',
        ...(cookie === '' ? {} : { cookie }),
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form === undefined ? {} : { body: form.toString() }),
    })
    for (const line of answer.headers['set-cookie'] ?? []) this.#keep(line)
    return answer
  }

  /** Without paths and domains: one person meets one server. */
  #keep(line: string): void {
    const [pair = '', ...rest] = line.split(';')
    const at = pair.indexOf('=')
    const value = pair.slice(at + 1)
    const isOver = value === '' || rest.some((part) => /expires=thu, 01 jan 1970/i.test(part))
    if (isOver) this.#cookies.delete(pair.slice(0, at))
    else this.#cookies.set(pair.slice(0, at), value)
  }
}

function nextStep(page: Page, stopAt: SignInPersonOptions['stopAt']): Step {
  const { url, answer } = page
  const { location } = answer.headers
  if (location !== undefined) {
    const target = new URL(location, url)
    return target.origin === url.origin ? { kind: 'follow', target } : { kind: 'left', url: target.href }
  }
  const form = formOf(answer.body)
  if (form === undefined || isRefusal(page)) return { kind: 'page', page }
  if (stopAt !== undefined && form.fields.get('prompt') === stopAt) return { kind: 'left', url: url.href }
  return { kind: 'fill-in', target: new URL(form.action, url), fields: form.fields }
}

interface Form {
  readonly action: string
  readonly fields: ReadonlyMap<string, string>
}

function formOf(html: string): Form | undefined {
  const form = /<form[^>]*>/.exec(html)?.[0]
  const action = attributeOf(form ?? '', 'action')
  if (action === undefined) return undefined
  const fields = new Map<string, string>()
  for (const [input] of html.matchAll(/<input[^>]*>/g)) {
    const name = attributeOf(input, 'name')
    if (name !== undefined) fields.set(name, attributeOf(input, 'value') ?? '')
  }
  return { action, fields }
}

function attributeOf(tag: string, name: string): string | undefined {
  return new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll('&amp;', '&')
}

/** The device page shows its form again, with a reason, when it does not accept a code. */
function isRefusal({ answer }: Page): boolean {
  return answer.status >= 400 || /class="red"/.test(answer.body)
}

function textOf({ answer }: Page): string {
  return `${answer.status} ${answer.body.replaceAll(/<style>[\s\S]*<\/style>|<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')}`.trim()
}
