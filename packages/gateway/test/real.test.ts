// Servers that nobody here wrote, behind one gateway, for the official clients.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { everythingStdio, memoryStdio, sdk1Stdio, sdk2Stdio, startEverythingHttp, verifies } from '@convoke/testkit'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import { type Opened, open } from './fixture.ts'

const textIn = (result: unknown): string =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text ?? '').join('\n')

async function withServers(work: (opened: Opened) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-real-'))
  const http = await startEverythingHttp()
  try {
    await using opened = await open({
      servers: {
        everything: everythingStdio(),
        web: { url: http.url },
        memory: memoryStdio(join(folder, 'graph.json')),
        v1: sdk1Stdio(),
        v2: sdk2Stdio(),
      },
      options: { limits: { listWaitMs: 30_000 } },
    })
    await work(opened)
  } finally {
    await http[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  }
}

/** What every client of them does. */
interface Caller {
  call(name: string, args: Record<string, unknown>): Promise<unknown>
  progress(name: string, args: Record<string, unknown>): Promise<number>
}

async function useServers({ call, progress }: Caller): Promise<void> {
  for (const server of ['everything', 'web']) {
    expect(textIn(await call(`${server}__echo`, { message: 'ü' }))).toBe('Echo: ü')
    expect(
      await progress(`${server}__trigger-long-running-operation`, { duration: 0.4, steps: 4 }),
    ).toBeGreaterThanOrEqual(3)
  }
  const entity = { name: `n${Math.random()}`, entityType: 'test', observations: ['seen'] }
  await call('memory__create_entities', { entities: [entity] })
  expect(textIn(await call('memory__read_graph', {}))).toContain(entity.name)
  expect(textIn(await call('v1__echo', { text: 'one' }))).toContain('one')
  expect(textIn(await call('v2__test_simple_text', {}))).toContain('text')
}

verifies(
  'gateway.021',
  () =>
    withServers(async (opened) => {
      const v1 = new ClientV1(
        { name: 'v1', version: '1' },
        { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
      )
      v1.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }))
      v1.setRequestHandler(CreateMessageRequestSchema, async () => ({
        role: 'assistant',
        model: 'm',
        content: { type: 'text', text: 'sampled' },
      }))
      await v1.connect(new TransportV1(new URL(opened.url)) as Parameters<ClientV1['connect']>[0])
      try {
        const { tools } = await v1.listTools()
        expect(new Set(tools.map(({ name }) => name.split('__')[0]))).toEqual(
          new Set(['everything', 'web', 'memory', 'v1', 'v2']),
        )
        await useServers({
          call: (name, args) => v1.callTool({ name, arguments: args }),
          async progress(name, args) {
            let count = 0
            await v1.callTool({ name, arguments: args }, undefined, { onprogress: () => void count++ })
            return count
          },
        })
        expect(
          textIn(
            await v1.callTool({ name: 'web__trigger-sampling-request', arguments: { prompt: 'hi', maxTokens: 5 } }),
          ),
        ).toContain('sampled')
        expect(textIn(await v1.callTool({ name: 'v1__ask', arguments: {} }))).toContain('Ada')
        const { prompts } = await v1.listPrompts()
        expect(prompts.map(({ name }) => name)).toContain('everything__simple-prompt')
        expect((await v1.getPrompt({ name: 'web__simple-prompt' })).messages.length).toBeGreaterThan(0)
        const { resources } = await v1.listResources()
        const owned = resources.find(({ _meta: meta }) => meta?.['convoke/server'] === 'web')
        const read = await v1.readResource({ uri: owned?.uri ?? '', _meta: { 'convoke/server': 'web' } })
        expect(read.contents.length).toBeGreaterThan(0)
      } finally {
        await v1.close()
      }
      for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }] as const) {
        const v2 = new ClientV2({ name: 'v2', version: '1' }, {
          capabilities: { elicitation: { form: {} } },
          versionNegotiation: { mode },
        } as ConstructorParameters<typeof ClientV2>[1])
        v2.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Grace' } }))
        await v2.connect(new TransportV2(new URL(opened.url)))
        try {
          expect(v2.getProtocolEra()).toBe(mode === 'legacy' ? 'legacy' : 'modern')
          expect((await v2.listTools()).tools.length).toBeGreaterThan(30)
          await useServers({
            call: (name, args) => v2.callTool({ name, arguments: args }),
            async progress(name, args) {
              let count = 0
              await v2.callTool({ name, arguments: args }, { onprogress: () => void count++ })
              return count
            },
          })
          expect(textIn(await v2.callTool({ name: 'v1__ask', arguments: {} }))).toContain('Grace')
          expect(
            textIn(await v2.callTool({ name: 'v2__test_input_required_result_elicitation', arguments: {} })),
          ).toContain('Grace')
        } finally {
          await v2.close()
        }
      }
    }),
  120_000,
)
