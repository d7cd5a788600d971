// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the configuration
// The command where shells, disks and people leave it: closed streams, full disks, missing folders, foreign projects, crowds.

import { lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { BIN, type Ended, Home } from './command.ts'
import { scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
beforeEach(() => home.configure({ s: scripted({ tools: 1 }) }))
afterAll(() => home[Symbol.asyncDispose]())

/** A line for a shell in which `$C` is the command. */
const shell = (line: string, env: Record<string, string | undefined> = {}): Promise<Ended> =>
  home.startProgram('bash', ['-c', line.replaceAll('$C', `"${process.execPath}" "${BIN}"`)], { env }).ended

test('works with any of its streams closed', async () => {
  for (const streams of ['<&-', '>&-', '2>&-', '<&- >&- 2>&-']) {
    const { stdout } = await shell(`$C call s/echo text=x ${streams}; echo "code $?"`)
    expect([streams, stdout.replace('x\n', '')]).toEqual([streams, 'code 0\n'])
  }
  await home.whenQuiet()
})

test('tells that its answer could not be written', async () => {
  for (const words of ['call s/echo text=x', 'tools --json', '--help']) {
    const { stdout, stderr } = await shell(`$C ${words} >/dev/full; echo "code $?"`)
    expect([words, stdout, stderr]).toEqual([words, 'code 7\n', 'error: The answer could not be written (ENOSPC).\n'])
  }
})

test('works where the working directory has been removed', async () => {
  const { stdout, stderr } = await shell(
    'mkdir gone; cd gone; rmdir ../gone; $C call s/echo text=x; echo "code $?"; $C list --config x.json; echo "code $?"',
  )
  expect(stdout).toBe('x\ncode 0\ncode 2\n')
  expect(stderr).toContain('The working directory no longer exists')
})

test('works without a home, and with one that cannot be written', async () => {
  const config = { XDG_CONFIG_HOME: join(home.folder, 'config'), XDG_STATE_HOME: undefined, XDG_CACHE_HOME: undefined }
  for (const HOME of [undefined, '/dev/null', BIN]) {
    const { code, stdout } = await home.run(['call', 's/echo', 'text=x'], {
      env: { ...config, HOME, TMPDIR: home.folder },
    })
    expect([HOME, code, stdout]).toEqual([HOME, EXIT.ok, 'x\n'])
  }
  const refused = await home.run(['tools', '--data-dir', BIN])
  expect([refused.code, refused.stderr]).toEqual([
    EXIT.usage,
    expect.stringContaining('--data-dir cannot be used (EEXIST)'),
  ])
  expect((await home.run(['tools', '--data-dir', 'made/here'])).code).toBe(EXIT.ok)
  expect((await stat(join(home.folder, 'made'))).mode & 0o777).toBe(0o700)
})

verifies('security.125', async () => {
  const project = join(home.folder, 'project')
  await mkdir(join(project, '.vscode'), { recursive: true })
  const evil = JSON.stringify({ mcpServers: { evil: { command: 'sh', args: ['-c', 'touch CANARY'] } } })
  for (const name of ['convoke.json', '.convoke.json', '.mcp.json', 'mcp.json', '.vscode/mcp.json'])
    await writeFile(join(project, name), evil)
  await writeFile(
    join(project, '.env'),
    `XDG_CONFIG_HOME=${project}\nNODE_OPTIONS=--require ./evil.cjs\nHTTPS_PROXY=http://127.0.0.1:9\n`,
  )
  await writeFile(join(project, 'evil.cjs'), 'require("node:fs").writeFileSync("CANARY", "")')
  for (const words of [['list'], ['tools'], ['status'], ['call', 's/echo', 'text=x']]) {
    const { stdout, stderr } = await home.run(words, { cwd: project })
    expect([words, (stdout + stderr).includes('evil')]).toEqual([words, false])
  }
  expect(await readdir(project)).not.toContain('CANARY')
})

test('adds entries from many processes at once, and through a link that leads to no file yet', async () => {
  const link = join(home.folder, 'link.json')
  await symlink('target.json', link)
  const names = Array.from({ length: 8 }, (_, index) => `n${index}`)
  const runs = await Promise.all(names.map((name) => home.run(['add', name, '--config', link, '--', 'x', name])))
  expect(runs.map(({ code }) => code)).toEqual(names.map(() => 0))
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  const { mcpServers } = JSON.parse(await readFile(join(home.folder, 'target.json'), 'utf8')) as { mcpServers: object }
  expect(Object.keys(mcpServers).sort()).toEqual(names)
  expect((await readdir(home.folder)).filter((name) => name.startsWith('.target'))).toEqual([])
})

test('reads a huge configuration in reasonable time and says what is wrong with all of it', async () => {
  const good = Object.fromEntries(
    Array.from({ length: 999 }, (_, index) => [
      `server ${index}`,
      { command: 'x', args: Array(100).fill('${HOME}/abc') },
    ]),
  )
  await home.configure({ ...good, bad: { command: 1, args: 2, env: 3, cwd: 4 } })
  const startedAtMs = performance.now()
  const { code, stdout, stderr } = await home.run(['list'])
  expect(performance.now() - startedAtMs).toBeLessThan(10_000)
  expect([code, stdout.trim().split('\n').length]).toEqual([EXIT.ok, 1000])
  expect(stderr.match(/server "bad"/g)).toHaveLength(4)
})

test('takes odd words as what they are', async () => {
  const rows: [string[], number, string, string][] = [
    [['call', 's/echo', '--', 'text=-x'], EXIT.ok, '-x\n', ''],
    [['call', 's/echo', 'text=--json'], EXIT.ok, '--json\n', ''],
    [['call', 's/echo', `text=a=b\n c`], EXIT.ok, 'a=b\n c\n', ''],
    [['call', 's/echo', '--', '--args'], EXIT.usage, '', '"--args" is not an argument'],
    [['call', 's/'], EXIT.usage, '', 'Name a tool of "s"'],
    [['call', '/'], EXIT.usage, '', 'There is no server for "/"'],
    [['call', ''], EXIT.usage, '', 'There is no tool ""'],
    [['read', ''], EXIT.usage, '', 'The URI is empty'],
    [['get', ''], EXIT.usage, '', 'There is no server ""'],
    [['tools', '--live', '--wait', '0', '--json', '--server', 's'], EXIT.ok, '"state":"starting"', ''],
  ]
  for (const [words, code, out, err] of rows) {
    const ended = await home.run(words)
    expect([words, ended.code]).toEqual([words, code])
    expect(ended.stdout).toContain(out)
    expect(ended.stderr).toContain(err)
  }
  await home.whenQuiet()
})
