// Pages are opened by real programs; only where they would be looked for is made up.
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPage } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterEach, beforeEach, expect } from 'vitest'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-browser-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const URL_ODD = "https://a.example/x?a=$(touch%20CANARY)&b=%22;%20'&&c"

/** A program that notes its arguments and its variables, and ends with `code`. */
async function program(name: string, code = 0): Promise<string> {
  const path = join(folder, name)
  const note = join(folder, `${name}.note`)
  await writeFile(path, `#!/bin/sh\nprintf '%s\\n' "$#" "$@" > '${note}'\nenv >> '${note}'\nexit ${code}\n`)
  await chmod(path, 0o700)
  return path
}
const noteOf = (name: string): Promise<string> => readFile(join(folder, `${name}.note`), 'utf8')

interface World {
  readonly os?: string
  readonly env?: Readonly<Record<string, string>>
}

const open = (url: string, { os = 'linux', env = {} }: World = {}): ReturnType<typeof openPage> =>
  openPage(url, { ...nodePlatform, os, env: { PATH: `${folder}:/usr/bin:/bin`, ...env } })

verifies('auth.214', async () => {
  const BROWSER = await program('browser')
  const opened = { kind: 'opened' }
  expect(await open(URL_ODD, { env: { BROWSER, API_TOKEN: 'CANARY', XDG_RUNTIME_DIR: '/run', LC_ALL: 'C' } })).toEqual(
    opened,
  )
  const note = await noteOf('browser')
  expect(note).toMatch(/^1\nhttps:\/\/a\.example\/x\?a=\$\(touch%20CANARY\)&b=%22;%20(?:'|%27)&&c\n/)
  expect(note).not.toContain('API_TOKEN')
  for (const kept of ['XDG_RUNTIME_DIR=/run', 'LC_ALL=C', 'BROWSER=']) expect(note).toContain(kept)
  // Nothing but pages.
  for (const url of [
    'http://192.168.0.5/x',
    'http://localhost.evil.example/x',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://me:password@a.example/x',
    '--help',
    'x',
    '',
  ])
    expect([url, await open(url, { env: { BROWSER } })]).toEqual([
      url,
      { kind: 'not-opened', because: 'only https addresses, and http addresses of this machine, are opened' },
    ])
  for (const url of ['http://127.0.0.1:5/x', 'http://localhost/x', 'http://[::1]:5/x'])
    expect([url, await open(url, { env: { BROWSER } })]).toEqual([url, opened])
  // The program of the system.
  await program('xdg-open')
  await program('open')
  await program('rundll32')
  const page = 'https://a.example/'
  expect(await open(page, { env: { DISPLAY: ':0' } })).toEqual(opened)
  expect(await noteOf('xdg-open')).toMatch(/^1\nhttps:\/\/a\.example\/\n/)
  expect(await open(page, { env: { WAYLAND_DISPLAY: 'wayland-0', SSH_CONNECTION: 'x' } })).toEqual(opened)
  expect(await open(page, { os: 'darwin' })).toEqual(opened)
  expect(await noteOf('open')).toMatch(/^1\nhttps:/)
  expect(await open(page, { os: 'win32' })).toEqual(opened)
  expect(await noteOf('rundll32')).toMatch(/^2\nurl\.dll,FileProtocolHandler\nhttps:/)
  // Where there is none, that is said.
  const rows: [World, string][] = [
    [{}, 'there is no desktop here'],
    [{ env: { SSH_CONNECTION: 'x' } }, 'this is a session on a remote machine'],
    [{ os: 'darwin', env: { SSH_CONNECTION: 'x' } }, 'this is a session on a remote machine'],
    [{ env: { BROWSER: 'no-such-browser' } }, '"no-such-browser" is not there'],
    [{ env: { BROWSER: 'browser --new-tab; x' } }, '"browser --new-tab; x" is not there'],
    [{ env: { BROWSER: await program('bad', 3) } }, `"${join(folder, 'bad')}" ended with code 3`],
    [{ env: { BROWSER: folder } }, `"${folder}" could not be started (EACCES)`],
  ]
  for (const [world, because] of rows)
    expect([world, await open(page, world)]).toEqual([world, { kind: 'not-opened', because }])
})

verifies('auth.214', async () => {
  // It has become the browser, and stays when we go.
  const path = join(folder, 'stays')
  await writeFile(path, `#!/bin/sh\necho $$ > '${join(folder, 'pid')}'\nexec sleep 600\n`)
  await chmod(path, 0o700)
  expect(await open('https://a.example/', { env: { BROWSER: path } })).toEqual({ kind: 'opened' })
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  expect(nodePlatform.kill(pid, 0, 'process')).toBe(true)
  nodePlatform.kill(pid, 'SIGKILL', 'group')
  await expect.poll(() => nodePlatform.kill(pid, 0, 'process'), { timeout: 20_000 }).toBe(false)
})
