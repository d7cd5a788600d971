// What a host can win over the plain floor under concurrency: one write a tick.
import { BatchingStdio } from '../floor/raw-client.mjs'
import { openPerServer } from './per-server.mjs'
import { makeRaw } from './raw.mjs'

export const open = (servers, marks) => openPerServer(servers, marks, makeRaw(BatchingStdio))
