// The official clients against the server half.
import { verifies } from '@convoke/testkit'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import { serve } from './server-fixture.ts'

const firstText = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

verifies('wire.222', async () => {
  await using served = await serve()
  const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } })
  const transport = new TransportV1(new URL(served.endpoint.url))
  const logs: unknown[] = []
  let changes = 0
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { n: 1 } }))
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params.level))
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++)
  await client.connect(transport as Parameters<ClientV1['connect']>[0])
  try {
    expect(client.getServerVersion()).toMatchObject({ name: 'fixture' })
    expect((await client.listTools()).tools.length).toBeGreaterThan(5)
    expect(firstText(await client.callTool({ name: 'echo', arguments: { a: 1 } }))).toBe('{"a":1}')
    const seen: number[] = []
    await client.callTool({ name: 'progress' }, undefined, { onprogress: ({ progress }) => void seen.push(progress) })
    expect(seen).toEqual([1, 2, 3])
    await client.setLoggingLevel('warning')
    await client.callTool({ name: 'log' })
    expect(logs).toEqual(['warning', 'error'])
    expect(firstText(await client.callTool({ name: 'ask', arguments: { rounds: 2 } }))).toBe(
      JSON.stringify([
        { action: 'accept', content: { n: 1 } },
        { action: 'accept', content: { n: 1 } },
      ]),
    )
    served.recorder.clients[0]?.notify('notifications/tools/list_changed', {})
    await expect.poll(() => changes).toBe(1)
    const controller = new AbortController()
    const held = client.callTool({ name: 'hold', arguments: { key: 'k' } }, undefined, { signal: controller.signal })
    await served.recorder.until(() => served.recorder.held.has('k'))
    controller.abort('enough')
    await expect(held).rejects.toThrow()
    await served.recorder.until(() => served.recorder.cancelled.length === 1)
    await transport.terminateSession()
    expect(served.endpoint.counts.sessions).toBe(0)
  } finally {
    await client.close()
  }
})

verifies('wire.223', async () => {
  await using served = await serve()
  const modes = [
    ['legacy', 'legacy'],
    ['auto', 'modern'],
    [{ pin: '2026-07-28' }, 'modern'],
  ] as const
  for (const [mode, era] of modes) {
    const client = new ClientV2({ name: 'v2', version: '1' }, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode },
    } as ConstructorParameters<typeof ClientV2>[1])
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { n: 1 } }))
    await client.connect(new TransportV2(new URL(served.endpoint.url)))
    try {
      expect(client.getProtocolEra()).toBe(era)
      expect((await client.listTools()).tools.length).toBeGreaterThan(5)
      expect(firstText(await client.callTool({ name: 'log', arguments: {} }))).toBe('logged')
      const seen: number[] = []
      await client.callTool({ name: 'progress' }, { onprogress: ({ progress }) => void seen.push(progress) })
      expect(seen).toEqual([1, 2, 3])
      expect(firstText(await client.callTool({ name: 'ask', arguments: { rounds: 2 } }))).toBe(
        JSON.stringify([
          { action: 'accept', content: { n: 1 } },
          { action: 'accept', content: { n: 1 } },
        ]),
      )
      await expect(client.callTool({ name: 'nobody' })).rejects.toMatchObject({ code: -32602 })
      const controller = new AbortController()
      const held = client.callTool({ name: 'hold', arguments: { key: 'k' } }, { signal: controller.signal })
      await served.recorder.until(() => served.recorder.held.has('k'))
      controller.abort('enough')
      await expect(held).rejects.toThrow()
      await served.recorder.until(() => !served.recorder.held.has('k'))
      if (era === 'modern') {
        const subscription = await client.listen({ toolsListChanged: true })
        await served.recorder.until(() => served.recorder.listeners.length > 0)
        expect(subscription.honoredFilter).toEqual({ toolsListChanged: true })
        await subscription.close()
      }
    } finally {
      await client.close()
    }
  }
})
