// People who sign in to a real authorization server by way of the command.
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type ProtectedServer,
  type SignInPersonOptions,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
} from '@convoke/testkit'
import { type Ended, Home, type RunOptions } from './command.ts'

/** The address that somebody is to sign in at. */
export const PAGE = /http:\/\/127\.0\.0\.1:\d+\/auth\?\S+/

/** A home, an authorization server, and a server that takes its tokens. Hold it with `await using`. */
export class SignInScene implements AsyncDisposable {
  readonly home: Home
  readonly authorization: AuthorizationServer
  readonly server: ProtectedServer

  private constructor(home: Home, authorization: AuthorizationServer, server: ProtectedServer) {
    this.home = home
    this.authorization = authorization
    this.server = server
  }

  /** The server is configured as `mail`. */
  static async make(options: AuthorizationServerOptions = {}): Promise<SignInScene> {
    const [home, authorization] = await Promise.all([Home.make(), startAuthorizationServer(options)])
    const scene = new SignInScene(home, authorization, await startProtectedServer({ issuer: authorization.issuer }))
    await home.configure({ mail: { url: scene.server.url } })
    return scene
  }

  /** Signs in through a pipe, as `convoke login mail --no-browser` lets one. */
  async login(
    words: readonly string[] = [],
    options: RunOptions & { person?: SignInPersonOptions } = {},
  ): Promise<Ended> {
    const { person, ...rest } = options
    const line = ['login', ...(words.some((word) => word === 'mail') ? [] : ['mail']), '--no-browser', ...words]
    const running = this.home.startPiped(line, rest)
    const [page] = await running.seen(PAGE)
    running.child.stdin?.write(`${await signInPerson(person).visit(page)}\n`)
    return running.ended
  }

  /** A program for the variable BROWSER: opens the page, signs in, and comes back. It notes what it was started with in the file `browser.json`. */
  async browser(): Promise<string> {
    const path = join(this.home.folder, 'browser.mjs')
    const testkit = resolve(import.meta.dirname, '../../testkit/src/index.ts')
    await writeFile(
      path,
      `#!/usr/bin/env -S node --conditions=@convoke/source
       const { writeFileSync } = await import('node:fs')
       const note = { args: process.argv.slice(2), env: process.env }
       writeFileSync(${JSON.stringify(join(this.home.folder, 'browser.json'))}, JSON.stringify(note))
       const { signInPerson } = await import(${JSON.stringify(testkit)})
       await signInPerson().signIn(process.argv[2])
      `,
    )
    await chmod(path, 0o700)
    return path
  }

  /** The folder of what is kept. */
  get signIns(): string {
    return join(this.home.folder, 'state/convoke/sign-ins')
  }

  /** The one file in a folder of what is kept. */
  async keptIn(folder: 'records' | 'index'): Promise<string> {
    const names = (await readdir(join(this.signIns, folder))).filter((name) => name.endsWith('.json'))
    if (names.length !== 1) throw new Error(`${folder} holds ${names.join(', ')}`)
    return join(this.signIns, folder, names[0] ?? '')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close()
    await this.authorization.close()
    await this.home[Symbol.asyncDispose]()
  }
}
