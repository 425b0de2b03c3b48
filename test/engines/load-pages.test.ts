/** Load samples from the metrics pages of each engine, captured and written by hand. */
import { describe, expect, it } from 'vitest'
import { llamacpp } from '../../src/engines/llamacpp.ts'
import { openai } from '../../src/engines/openai.ts'
import { sglang } from '../../src/engines/sglang.ts'
import { tgi } from '../../src/engines/tgi.ts'
import { vllm } from '../../src/engines/vllm.ts'
import { fixture, VLLM } from './captures.ts'

function page(name: string): string {
  return fixture(name).toString('latin1')
}

describe('a vLLM page', () => {
  it('gives gauges, KV capacity, start and work done', () => {
    expect(vllm.parseLoad(page(`${VLLM}/metrics-under-load.txt`))).toEqual({
      gauges: {
        runningRequests: 16,
        waitingRequests: 8,
        kvUsageRatio: 0.20125786163522008,
        preemptionsTotal: 0,
      },
      limits: { kvCapacityTokens: 20_480 },
      asleep: false,
      processStartSec: 1_795_965_516.11,
      progressTotal: 546,
    })
    expect(vllm.parseLoad(page(`${VLLM}/metrics-kv-pressure-preemption.txt`))?.gauges).toMatchObject({
      kvUsageRatio: expect.closeTo(0.943, 3),
      preemptionsTotal: 3,
    })
  })

  it('tells a sleeping engine', () => {
    expect(vllm.parseLoad(page(`${VLLM}/metrics-while-asleep.txt`))?.asleep).toBe(true)
    expect(vllm.parseLoad(page(`${VLLM}/metrics-idle.txt`))?.asleep).toBe(false)
  })

  it('without any known gauge is no data', () => {
    for (const text of [
      page(`${VLLM}/tokencap-metrics-disable-log-stats.txt`),
      '',
      '<html></html>',
      'vllm:num_requests_running NaN\n',
    ]) {
      expect(vllm.parseLoad(text)).toBeUndefined()
    }
    expect(vllm.parseLoad(page('llamacpp-11549/metrics-busy.txt'))).toBeUndefined()
  })

  it('sums the ranks of a data-parallel engine and takes the fullest KV', () => {
    const text = [
      'vllm:num_requests_running{engine="0",model_name="m"} 7',
      'vllm:num_requests_running{engine="1",model_name="m"} 0',
      'vllm:num_requests_waiting{engine="0",model_name="m"} 2',
      'vllm:num_requests_waiting{engine="1",model_name="m"} 1',
      'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="1"} 0.61',
      'vllm:kv_cache_usage_perc{engine="1",model_name="m",pid="2"} 0.1',
      'vllm:cache_config_info{engine="0",num_gpu_blocks="100",block_size="16",kv_cache_size_tokens="None"} 1',
      'vllm:cache_config_info{engine="1",num_gpu_blocks="100",block_size="16"} 1',
    ].join('\n')
    expect(vllm.parseLoad(text)).toMatchObject({
      gauges: { runningRequests: 7, waitingRequests: 3, kvUsageRatio: 0.61 },
      limits: { kvCapacityTokens: 3200 },
    })
  })

  it('reads the names of older versions, and both at once', () => {
    const text =
      'vllm:num_requests_running{model_name="m"} 1\nvllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
    expect(vllm.parseLoad(text)?.gauges).toEqual({
      runningRequests: 1,
      waitingRequests: 0,
      kvUsageRatio: 0.5,
    })
    expect(vllm.parseLoad(`${text}vllm:kv_cache_usage_perc{model_name="m"} 0.4\n`)?.gauges.kvUsageRatio).toBe(
      0.5,
    )
  })

  it('stays within 0 and 1 for KV', () => {
    expect(
      vllm.parseLoad('vllm:num_requests_running 0\nvllm:kv_cache_usage_perc 1.2')?.gauges.kvUsageRatio,
    ).toBe(1)
  })
})

describe('the other engines', () => {
  it('give what they have', () => {
    expect(tgi.parseLoad(page('tgi-3.3.7/metrics-busy.txt'))?.gauges).toEqual({
      runningRequests: 2,
      waitingRequests: 2,
    })
    expect(tgi.parseLoad(page('tgi-3.3.7/metrics-idle.txt'))?.gauges.runningRequests ?? 0).toBe(0)
    expect(llamacpp.parseLoad(page('llamacpp-11549/metrics-busy.txt'))?.gauges.runningRequests).toBe(2)
    expect(openai.parseLoad('anything 1')).toBeUndefined()
  })

  it('show no figure below zero, and no limit of none', () => {
    const rank = { num_running_reqs: -3, num_waiting_reqs: 2, token_usage: -0.1 }
    const loads = [{ ...rank, max_total_num_tokens: 0, max_running_requests: 0 }, { num_running_reqs: 5 }]
    expect(sglang.parseLoad(JSON.stringify({ loads }))).toEqual({
      gauges: { runningRequests: 5, waitingRequests: 2 },
      limits: {},
      asleep: false,
    })
    const text = 'llamacpp:requests_processing -1\nllamacpp:requests_deferred 2\n'
    expect(llamacpp.parseLoad(text)?.gauges).toEqual({ runningRequests: 0, waitingRequests: 2 })
    const endless = JSON.stringify({ total_slots: 1e200, default_generation_settings: { n_ctx: 1e200 } })
    expect(llamacpp.parseLimits(endless, 'tiny')).toEqual({})
  })

  it('count an SGLang series once, whatever ranks and priorities repeat it', () => {
    const text = [
      'sglang:num_running_reqs{tp_rank="0",priority=""} 5',
      'sglang:num_running_reqs{tp_rank="0",priority="1"} 5',
      'sglang:num_running_reqs{tp_rank="1",priority=""} 5',
      'sglang:num_queue_reqs{tp_rank="0"} 2',
      'sglang:num_grammar_queue_reqs{tp_rank="0"} 1',
      'sglang:token_usage{tp_rank="0"} 0.41',
      'sglang:max_total_num_tokens{tp_rank="0"} 1000',
    ].join('\n')
    expect(sglang.parseLoad(text)).toMatchObject({
      gauges: { runningRequests: 5, waitingRequests: 3, kvUsageRatio: 0.41 },
      limits: { kvCapacityTokens: 1000 },
    })
  })
})
