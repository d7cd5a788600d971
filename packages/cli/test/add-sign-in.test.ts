// `convoke add` asks a new server whether it wants a sign-in.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { signInPerson, verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect } from 'vitest'
import { EXIT } from '../src/index.ts'
import { faultsOf } from './answer-schemas.ts'
import { PAGE, SignInScene } from './sign-in-support.ts'

let scene: SignInScene
beforeEach(async () => {
  scene = await SignInScene.make()
})
afterEach(async () => {
  await scene.home.whenQuiet()
  await scene[Symbol.asyncDispose]()
})

verifies('auth.211', async () => {
  const { home, server, authorization } = scene
  await home.configure('{}')
  const wants = await home.run(['add', "Ada's mail", '--url', server.url])
  expect([wants.code, wants.stdout]).toEqual([EXIT.ok, `Added Ada's mail to ${home.configFile}\n`])
  expect(wants.stderr).toContain(`Ada's mail wants a sign-in: convoke login 'Ada'\\''s mail'\n`)
  expect(wants.stderr).not.toContain('Sign in now')
  const json = async (...words: string[]): Promise<unknown> => {
    const { stdout, code } = await home.run(['--json', 'add', ...words])
    expect([code, await faultsOf('add', stdout)]).toEqual([EXIT.ok, []])
    return JSON.parse(stdout)
  }
  expect(await json('two', '--url', server.url)).toMatchObject({ added: 'two', wantsSignIn: true })
  expect(await json('entry', '--entry', JSON.stringify({ url: server.url }))).toMatchObject({ wantsSignIn: true })
  expect(await json('three', '--url', server.url, '--no-probe')).not.toHaveProperty('wantsSignIn')
  const before = (await server.stats()).discoveries
  for (const words of [
    ['bearer', '--url', server.url, '--bearer-token-env-var', 'TOKEN'],
    ['off', '--entry', JSON.stringify({ url: server.url, disabled: true })],
    ['program', '--', 'x'],
  ])
    expect(await json(...words)).not.toHaveProperty('wantsSignIn')
  expect((await server.stats()).discoveries).toBe(before)
  // One that wants none, one that is not there, and one that never answers.
  const plain = createServer((_request, response) => response.writeHead(404).end())
  const silent = createServer(() => {})
  for (const one of [plain, silent]) await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
  const urlOf = (one: typeof plain): string => `http://127.0.0.1:${(one.address() as AddressInfo).port}/mcp`
  try {
    expect(await json('plain', '--url', urlOf(plain))).toMatchObject({ wantsSignIn: false })
    expect(await json('gone', '--url', 'http://127.0.0.1:9/mcp')).not.toHaveProperty('wantsSignIn')
    expect(await json('silent', '--url', urlOf(silent))).not.toHaveProperty('wantsSignIn')
  } finally {
    for (const one of [plain, silent]) {
      one.closeAllConnections()
      await new Promise((resolve) => one.close(resolve))
    }
  }
  // On a terminal it is offered, and a yes is the default.
  const onTerminal = home.startOnTerminal(['add', 'four', '--url', server.url])
  await onTerminal.seen(/Sign in now\?/)
  await onTerminal.seen(/└/)
  onTerminal.child.stdin?.write('\r')
  const [page] = await onTerminal.seen(PAGE)
  await signInPerson().signIn(page)
  await onTerminal.seen(/Signed in to \S*four/)
  expect((await onTerminal.ended).code).toBe(EXIT.ok)
  expect((await home.run(['call', 'four/whoami'])).stdout).toContain('"ada"')
  const declined = home.startOnTerminal(['add', 'five', '--url', server.url])
  await declined.seen(/└/)
  declined.child.stdin?.write('n')
  const { code, stdout } = await declined.ended
  expect([code, PAGE.test(stdout)]).toEqual([EXIT.ok, false])
  // A sign-in that fails leaves the entry.
  const failing = home.startOnTerminal(['add', 'six', '--url', server.url])
  await failing.seen(/└/)
  await authorization.set({ registration: 'refused' })
  failing.child.stdin?.write('y')
  await failing.seen(/It has been added all the same; sign in another time: convoke login six/)
  expect((await failing.ended).code).toBe(EXIT.ok)
  expect(await readFile(home.configFile, 'utf8')).toContain('"six"')
})
