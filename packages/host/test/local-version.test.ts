// Which version would be started: read from the disk, without starting anything.
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { localVersion } from '../src/catalog/local-version.ts'
import { named } from './catalog-support.ts'
import { http } from './support.ts'

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-version-'))
  await mkdir(join(root, 'pkg/dist/deep'), { recursive: true })
  await mkdir(join(root, 'bare'))
  await mkdir(join(root, 'broken'))
  await writeFile(join(root, 'pkg/package.json'), '{"name":"pkg","version":"1.2.3"}')
  await writeFile(join(root, 'broken/package.json'), '{')
  for (const file of ['pkg/dist/deep/index.js', 'bare/server.py', 'bare/data.txt', 'broken/index.mjs'])
    await writeFile(join(root, file), 'x')
  await utimes(join(root, 'bare/server.py'), 1_000, 1_000)
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

const versionOf = (command: string, ...args: string[]): Promise<string | undefined> =>
  localVersion(named('s', { transport: { kind: 'stdio', command, args, env: {}, envVars: [] } }), nodePlatform.files)

test('the package around a script, or the script itself, says which version it is', async () => {
  expect(await versionOf('node', '--flag', join(root, 'pkg/dist/deep/index.js'))).toBe('pkg@1.2.3')
  expect(await versionOf(join(root, 'pkg/dist/deep/index.js'))).toBe('pkg@1.2.3')
  expect(await versionOf('python3', join(root, 'bare/server.py'))).toBe('1/1000000')
})

test('what cannot be told from the disk has no version', async () => {
  expect(await versionOf('npx', '-y', 'pkg')).toBeUndefined()
  expect(await versionOf('node', 'pkg/dist/deep/index.js')).toBeUndefined()
  expect(await versionOf('cat', join(root, 'bare/data.txt'))).toBeUndefined()
  expect(await versionOf('node', join(root, 'broken/index.mjs'))).toBeUndefined()
  expect(await versionOf('node', join(root, 'gone.js'))).toBeUndefined()
  expect(await localVersion(http('s', 'https://a.example/x.js'), nodePlatform.files)).toBeUndefined()
})
