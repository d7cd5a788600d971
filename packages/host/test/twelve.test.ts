// The main job in one story: twelve servers of several makers, some of them broken, through the public API.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { everythingStdio, filesystemStdio, memoryStdio, sdk1Stdio, startSdk2Http, verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { callTool, hostOf, http, isAlive, scripted, stdio, textIn } from './support.ts'

verifies(
  'connection.061',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
    await writeFile(join(folder, 'note.txt'), 'a note')
    await using stateless = await startSdk2Http({ era: 'modern', sessions: 'none' })
    try {
      const { host } = await hostOf(
        [
          stdio('everything', everythingStdio()),
          stdio('everything two', everythingStdio()),
          stdio('files', filesystemStdio(folder)),
          stdio('files-2', filesystemStdio(folder)),
          stdio('memory', memoryStdio(join(folder, 'one.json'))),
          stdio('memory-2', memoryStdio(join(folder, 'two.json'))),
          stdio('sdk1', sdk1Stdio()),
          http('sdk2', stateless.url),
          scripted('silent', { listing: 'silent' }, { startupTimeoutMs: 6_000 }),
          scripted('exits', { exitAtStart: { code: 1 }, stderr: ['bad licence'] }),
          scripted('noisy', { banner: ['Welcome!', '{oops'] }),
          scripted('late', { startDelayMs: 3_000 }),
        ],
        { stateDirectory: join(folder, 'state'), cacheDirectory: join(folder, 'cache') },
      )
      const pids: (number | undefined)[] = []
      {
        await using _ = host
        await host.whenSettled({ waitMs: 25_000 })
        await using binding = await host.bind()
        expect(
          binding.statuses.map(({ name, state, reason }) => `${name}: ${state} ${reason?.code ?? ''}`.trim()),
        ).toEqual([
          'everything: ready',
          'everything two: ready',
          'files: ready',
          'files-2: ready',
          'memory: ready',
          'memory-2: ready',
          'sdk1: ready',
          'sdk2: ready',
          'silent: failed STARTUP_TIMEOUT',
          'exits: failed SERVER_EXITED',
          'noisy: ready',
          'late: ready',
        ])
        pids.push(...host.statuses.map(({ pid }) => pid))
        for (const { name, state, toolCount } of binding.statuses)
          if (state === 'ready')
            expect([name, binding.tools.filter(({ server }) => server === name).length]).toEqual([name, toolCount])
        const answers = await Promise.all([
          callTool(binding, 'everything/echo', { message: 'one' }),
          callTool(binding, 'everything two/echo', { message: 'two' }),
          callTool(binding, 'files/read_text_file', { path: join(folder, 'note.txt') }),
          callTool(binding, 'memory/read_graph'),
          callTool(binding, 'sdk1/echo', { text: 'three' }),
          callTool(binding, 'sdk2/test_simple_text'),
          callTool(binding, 'late/echo', { text: 'four' }),
        ])
        expect(answers.map(({ kind }) => kind)).toEqual(answers.map(() => 'ok'))
        expect(textIn(answers[2] ?? answers[0])).toBe('a note')
      }
      expect(pids.filter(isAlive)).toEqual([])
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  60_000,
)
