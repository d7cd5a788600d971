// Every secret of a sign-in is planted, or taken from the store, and searched for in everything that comes out of the commands.
import { createDecipheriv } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Canaries, signInPerson, verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { EXIT } from '../src/index.ts'
import { BIN, type Ended, type Running, type RunOptions } from './command.ts'
import { scripted } from './servers.ts'
import { PAGE, SignInScene } from './sign-in-support.ts'

const REDIRECT = 'http://127.0.0.1/callback'

/** Runs commands, and looks at every process of the home while they run. */
class Watcher {
  readonly #scene: SignInScene
  readonly #env: Readonly<Record<string, string>>
  readonly #canaries: Canaries
  readonly #seen = new Set<string>()
  readonly #looks = new Map<string, string>()

  constructor(scene: SignInScene, canaries: Canaries, env: Readonly<Record<string, string>>) {
    this.#scene = scene
    this.#canaries = canaries
    this.#env = env
  }

  /** The commands of the processes that were seen. */
  get commands(): readonly string[] {
    return [...this.#looks.keys()]
  }

  async run(
    words: readonly string[],
    options: RunOptions & { step?: (running: Running) => Promise<void> } = {},
  ): Promise<Ended> {
    const { step, ...rest } = options
    const running = this.#scene.home.startPiped(words, { ...rest, env: { ...this.#env, ...rest.env } })
    let isOver = false
    const ended = running.ended.finally(() => {
      isOver = true
    })
    const looking = (async () => {
      while (!isOver) await this.#look()
    })()
    await step?.(running)
    if (step === undefined) running.child.stdin?.end()
    const end = await ended
    await looking
    this.#canaries.watch(`stdout of ${words.join(' ')}`, end.stdout)
    this.#canaries.watch(`stderr of ${words.join(' ')}`, end.stderr)
    return end
  }

  /** The command itself has the secret that it was given in a variable; nobody else may. */
  async #look(): Promise<void> {
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const [environ = '', command = ''] = await Promise.all(
        ['environ', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      if (command === '' || !environ.includes(this.#scene.home.folder)) continue
      const isOurs = command.split('\0').includes(BIN)
      const text = isOurs ? command : `${command}\n${environ}`
      if (this.#seen.has(text)) continue
      this.#seen.add(text)
      this.#looks.set(command.replaceAll('\0', ' '), text)
      this.#canaries.watch(`process ${command.replaceAll('\0', ' ').slice(0, 80)}`, text)
    }
  }
}

verifies(
  'auth.215',
  async () => {
    const canaries = new Canaries()
    const secret = canaries.plantPlain('client secret')
    const client = { client_id: 'app', client_secret: secret, redirect_uris: [REDIRECT], application_type: 'native' }
    await using scene = await SignInScene.make({
      clients: [{ ...client, grant_types: ['authorization_code', 'refresh_token'] }],
    })
    const { home, authorization, server } = scene
    const oauth = {
      ...{ clientId: 'app', clientSecretEnvVar: 'APP_SECRET', callbackUrl: REDIRECT },
      issuer: authorization.issuer,
    }
    await home.configure({ mail: { url: server.url, oauth }, files: { ...scripted(), startup: 'eager' } })
    const watcher = new Watcher(scene, canaries, { APP_SECRET: secret })
    canaries.watch('home', { kind: 'path', path: home.folder })
    const signIn = async (running: Running): Promise<void> => {
      const [page] = await running.seen(PAGE)
      const callback = await signInPerson().visit(page)
      canaries.add(`code ${callback.length}`, new URL(callback).searchParams.get('code') ?? '')
      running.child.stdin?.write(`${callback}\n`)
    }
    let tokenCount = 0
    /** Takes the tokens from the store, and looks for them everywhere as long as they are there. */
    const check = async (): Promise<void> => {
      for (const token of await tokensOf(scene)) canaries.add(`token ${tokenCount++}`, token)
      canaries.assertNowhere()
    }
    await authorization.set({ accessTokenSeconds: 20 })
    const login = await watcher.run(['login', 'mail', '--no-browser', '--scopes', 'mcp openid'], { step: signIn })
    expect(login).toMatchObject({ code: EXIT.ok })
    await check()
    for (const words of [
      ['call', 'mail/whoami'],
      ['call', 'mail/write', '--json'],
      ['tools', '--live'],
      ['status', '--live', '--json'],
      ['explain', 'mail', '--json'],
      ['plan', '--json'],
      ['get', 'mail', '--json'],
      ['auth', 'status', '--probe', '--all'],
      ['auth', 'status', '--json'],
    ]) {
      expect([words, (await watcher.run(words)).code]).toEqual([
        words,
        words[1] === 'mail/write' ? EXIT.needsPerson : EXIT.ok,
      ])
      await check()
    }
    // A renewal that is refused.
    await authorization.revokeGrant('ada')
    for (const [exit, ...words] of [
      [EXIT.needsPerson, 'call', 'mail/echo'],
      [EXIT.needsPerson, 'call', 'mail/echo', '--json'],
      [EXIT.ok, 'auth', 'status'],
      [EXIT.ok, 'auth', 'status', '--json'],
    ] as const) {
      const { code, stderr } = await watcher.run(words)
      expect([words, code, code === exit ? '' : stderr]).toEqual([words, exit, ''])
    }
    await check()
    // Refused, with what came back in the browser.
    const denied = await watcher.run(['login', 'mail', '--no-browser'], {
      step: async (running) => {
        const [page] = await running.seen(PAGE)
        running.child.stdin?.write(`${await signInPerson({ consent: 'deny' }).visit(page)}\n`)
      },
    })
    expect(denied.code).toBe(EXIT.failed)
    // With a browser, which is a process of its own, and an answer in JSON.
    const browsed = await watcher.run(['login', 'mail', '--json'], { env: { BROWSER: await scene.browser() } })
    expect(browsed.code).toBe(EXIT.ok)
    await check()
    expect((await watcher.run(['logout', 'mail', '--json'])).code).toBe(EXIT.ok)
    canaries.assertNowhere()
    expect(await tokensOf(scene)).toEqual([])
    // Something was looked at: otherwise nothing would have been found.
    expect(tokenCount).toBeGreaterThan(6)
    for (const seen of ['browser.mjs', 'scripted-stdio', 'convoke.js login'])
      expect(watcher.commands.join('\n')).toContain(seen)
    const note = JSON.parse(await readFile(join(home.folder, 'browser.json'), 'utf8')) as { env: object }
    expect(Object.keys(note.env)).not.toContain('APP_SECRET')
    await home.whenQuiet()
  },
  240_000,
)

/** The tokens that are kept now, read as the host reads them. */
async function tokensOf({ home, signIns }: SignInScene): Promise<readonly string[]> {
  const key = await readFile(join(home.folder, 'config/convoke-keys/sign-ins.key'))
  const names = (await readdir(join(signIns, 'records'))).filter((name) => name.endsWith('.json'))
  const records = await Promise.all(names.map((name) => unsealed(join(signIns, 'records', name), key)))
  return records.flatMap((record) => {
    const { tokens } = JSON.parse(record) as { tokens: { accessToken: string; refreshToken?: string } }
    return [tokens.accessToken, ...(tokens.refreshToken === undefined ? [] : [tokens.refreshToken])]
  })
}

/** Written anew from the description of the form: nonce of 12 bytes, tag of 16 bytes and ciphertext in hexadecimal digits; the name is authenticated. */
async function unsealed(path: string, key: Buffer): Promise<string> {
  const [version, digits = ''] = (await readFile(path, 'utf8')).split(':')
  const bytes = Buffer.from(digits, 'hex')
  const opener = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 })
  opener.setAAD(Buffer.from(`${version}:${basename(path, '.json')}`)).setAuthTag(bytes.subarray(12, 28))
  return opener.update(bytes.subarray(28), undefined, 'utf8') + opener.final('utf8')
}
