// What cannot be seen on this machine: the other systems, as tables.
import { execFileSync, spawn } from 'node:child_process'
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { childEnvironment } from '../src/environment.ts'
import { nodeProcesses, parsePsLine, parseStat, psTable, shownCommand } from '../src/process-table.ts'
import { resolveWindowsCommand } from '../src/windows-command.ts'

test('the fields of /proc are counted behind a name that holds brackets and blanks', () => {
  const fields = '7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 4242 26'
  expect(parseStat(5, `5 (a) R 1) S ${fields}`)).toEqual({
    pid: 5,
    parentPid: 7,
    groupId: 8,
    startedAt: '4242',
    zombie: false,
  })
  expect(parseStat(5, `5 (x) Z ${fields}`)?.zombie).toBe(true)
  expect(parseStat(5, '')).toBeUndefined()
})

test('a line of ps is read as macOS writes it', () => {
  expect(
    parsePsLine('  501   1   501 Ss   Mon Nov 30 21:00:01 2026     /usr/bin/node server.js --token secret'),
  ).toEqual({
    pid: 501,
    parentPid: 1,
    groupId: 501,
    startedAt: 'Mon Nov 30 21:00:01 2026',
    zombie: false,
    command: '/usr/bin/node server.js',
  })
  expect(parsePsLine('  502   1   501 Z    Mon Nov  2 21:00:01 2026     (node)')?.zombie).toBe(true)
  expect(parsePsLine('')).toBeUndefined()
})

const hasPs = ((): boolean => {
  try {
    execFileSync('ps', ['-p', '1'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()
test('ps and /proc tell the same of one process', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], { stdio: 'ignore', detached: true })
  const pid = child.pid as number
  const proc = nodeProcesses.facts(pid)
  expect(proc).toMatchObject({ pid, parentPid: process.pid, groupId: pid, zombie: false })
  expect(nodeProcesses.all().some((one) => one.pid === pid)).toBe(true)
  expect(psTable.variable(pid, 'PATH')).toBeUndefined()
  expect(psTable.facts(pid)?.groupId).toBe(hasPs ? pid : undefined)
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('close', resolve))
  expect(nodeProcesses.facts(pid)).toBeUndefined()
})

test('a command is shown without what may be secret', () => {
  expect(shownCommand(['node', 'server.js', '--token', 's'])).toBe('node server.js')
  expect(shownCommand(['docker', 'run', '-e', 'A=b'])).toBe('docker run')
  for (const first of ['-c', '--key=1', 'KEY=secret', 'https://user:secret@host', ''])
    expect(shownCommand(['sh', first])).toBe('sh')
  expect(shownCommand(['\u001b[31mred', 'x'.repeat(400)])).toHaveLength(256)
})

test('the environment of a Windows child is found whatever the case of its names', () => {
  const host = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', SECRET: 's', myVar: 'm', TEMP: 't' }
  expect(childEnvironment(host, 'win32', { env: { PATH: 'D:\\' }, inheritEnv: ['MYVAR'] })).toEqual({
    PATH: 'D:\\',
    SystemRoot: 'C:\\Windows',
    myVar: 'm',
    TEMP: 't',
  })
})

verifies('wire.069', () => {
  const files = new Set(['C:\\node\\npx.CMD', 'C:\\node\\node.EXE', 'D:\\work\\run.bat', 'C:\\tools\\plain'])
  const env = { Path: 'C:\\empty;C:\\node\\', PATHEXT: '.COM;.EXE;.BAT;.CMD', ComSpec: 'C:\\Windows\\cmd.exe' }
  const resolve = (command: string, args: readonly string[] = []): unknown =>
    resolveWindowsCommand({ command, args, env, cwd: 'D:\\work' }, (path) => files.has(path))
  expect(resolve('node', ['%PATH%', '"'])).toEqual({
    command: 'C:\\node\\node.EXE',
    args: ['%PATH%', '"'],
    verbatimArguments: false,
  })
  expect(resolve('npx', ['-y', 'a b', 'C:\\dir\\'])).toEqual({
    command: 'C:\\Windows\\cmd.exe',
    args: ['/d', '/s', '/c', '""C:\\node\\npx.CMD" "-y" "a b" "C:\\dir\\\\""'],
    verbatimArguments: true,
  })
  expect(resolve('.\\run', ['x'])).toMatchObject({ command: '.\\run' })
  expect(resolve('run.bat', ['x'])).toMatchObject({ command: 'run.bat', verbatimArguments: false })
  expect(resolve('D:\\work\\run.bat', ['x'])).toMatchObject({ verbatimArguments: true })
  expect(resolve('missing', ['x'])).toEqual({ command: 'missing', args: ['x'], verbatimArguments: false })
  for (const arg of ['%PATH%', '!x!', '^', '"', '&calc', '|', '<', '>', '(', '\n', '\0'])
    expect(() => resolve('npx', [arg]), arg).toThrow(/command file/)
})
