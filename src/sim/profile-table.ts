/** Fitted step costs of (model, GPU, tensor parallelism), one line each; see profiles.ts for formula and source. */

/** Where the kernel times behind a line were published; see `PROFILE_SOURCES`. */
export type ProfileSource = 'aiconfigurator' | 'vidur' | 'invented'

/**
 * id, source, KV capacity in tokens, then in ms: prefill floor, base, per token, per token and context token;
 * decode base, per sequence, per context token.
 */
export const PROFILE_TABLE = `
Llama-3.1-8B/A100-80G-SXM/tp1         aiconfigurator  448227   11.3946  5.9938   0.053247   2.9519e-06  11.0401  0.030338   8.0109e-05
Qwen2.5-7B/A100-80G-SXM/tp1           aiconfigurator  1038982  11.2728  5.5727   0.050419   2.0728e-06  10.515   0.027367   3.0338e-05
Llama-3.1-8B/H100-80G-SXM/tp1         aiconfigurator  445480   7.241    0.7482   0.019865   7.4943e-07  6.4587   0.010458   4.1231e-05
Qwen2.5-7B/H100-80G-SXM/tp1           aiconfigurator  1032704  6.2707   0.5094   0.018725   6.1843e-07  5.9815   0.007498   1.5254e-05
Llama-3.1-8B/H200-141G-SXM/tp1        aiconfigurator  893173   5.4311   1.2243   0.019501   7.7769e-07  5.0406   0.011866   2.756e-05
Qwen2.5-7B/H200-141G-SXM/tp1          aiconfigurator  2056002  4.9263   1.0916   0.017994   6.3944e-07  4.6623   0.0087698  9.7046e-06
Llama-3.1-8B/L40S-48G/tp1             aiconfigurator  190048   24.8898  0        0.071368   2.3065e-06  22.1829  0.03128    0.00019982
Qwen2.5-7B/L40S-48G/tp1               aiconfigurator  448860   23.2751  3.8555   0.058699   2.3083e-06  20.7026  0.027697   7.8943e-05
Llama-3.1-8B/B200-180G/tp1            aiconfigurator  1176757  3.7702   0.9602   0.0099754  3.496e-07   3.5065   0.0046645  1.7203e-05
Qwen2.5-7B/B200-180G/tp1              aiconfigurator  2704196  3.3859   0.5208   0.0094794  2.6794e-07  3.2673   0.0036866  6.0778e-06
Llama-3.1-70B/A100-80G-SXM/tp2        aiconfigurator  25986    52.2763  24.8921  0.26956    6.6876e-06  48.8773  0.14366    0.00010041
Llama-3.1-70B/A100-80G-SXM/tp4        aiconfigurator  482590   30.8982  16.558   0.16337    3.1357e-06  27.7708  0.10691    5.5608e-05
Llama-3.1-70B/H100-80G-SXM/tp2        aiconfigurator  23789    29.0907  0        0.11079    2.1554e-06  27.9655  0.031328   5.1125e-05
Llama-3.1-70B/H100-80G-SXM/tp4        aiconfigurator  478195   17.2727  5.0263   0.064722   1.1529e-06  15.461   0.034325   2.8039e-05
Llama-3.1-70B/H200-141G-SXM/tp2       aiconfigurator  381943   22.0954  2.3955   0.10646    1.9705e-06  21.263   0.039584   3.3626e-05
Llama-3.1-70B/H200-141G-SXM/tp4       aiconfigurator  1194504  13.7496  3.8251   0.062714   1.1367e-06  12.4035  0.034509   1.7947e-05
Llama-3.1-70B/B200-180G/tp2           aiconfigurator  608811   16.0209  7.6185   0.052239   9.9822e-07  14.4677  0.033712   2.2677e-05
Qwen3-32B/H200-141G-SXM/tp1           aiconfigurator  257900   20.4239  2.6744   0.08394    3.2367e-06  19.1475  0.033547   5.8642e-05
Qwen3-32B/H100-80G-SXM/tp2            aiconfigurator  318058   16.2393  0.9754   0.051985   1.5868e-06  13.9216  0.023588   4.4642e-05
Qwen3-32B/A100-80G-SXM/tp2            aiconfigurator  320805   25.5338  14.2593  0.12802    5.4261e-06  24.4974  0.07907    8.0217e-05
Llama-3.1-8B/H100-80G-SXM/tp1/fp8     aiconfigurator  498728   4.7728   2.076    0.014132   7.3176e-07  4.4625   0.011098   4.0965e-05
Llama-3.1-8B/H200-141G-SXM/tp1/fp8    aiconfigurator  946421   3.9847   2.4937   0.01175    7.609e-07   3.7377   0.012605   2.7798e-05
Llama-3.1-8B/L40S-48G/tp1/fp8         aiconfigurator  243296   14.2534  4.8999   0.045066   2.4496e-06  12.9273  0.017559   0.00019784
Llama-3.1-70B/H100-80G-SXM/tp2/fp8    aiconfigurator  232685   18.3971  4.7077   0.078843   1.6625e-06  17.0676  0.039871   5.1183e-05
Llama-3.1-70B/H200-141G-SXM/tp2/fp8   aiconfigurator  590839   15.9417  3.9815   0.06969    1.8174e-06  13.8143  0.042899   3.5355e-05
Llama-2-7B/A100-80G-SXM/tp1/vidur     vidur           116984   10.0565  4.4363   0.061523   6.4872e-06  9.5474   0.02962    0.00033313
CodeLlama-34B/A100-80G-SXM/tp2/vidur  vidur           417753   25.7401  8.9855   0.1642     6.8589e-06  24.1954  0.076862   5.9367e-05
Llama-2-70B/A100-80G-SXM/tp2/vidur    vidur           35612    51.8331  22.8704  0.32326    1.2819e-05  47.4521  0.17949    9.5243e-05
Llama-2-70B/A100-80G-SXM/tp4/vidur    vidur           492216   29.6165  14.8479  0.18491    6.6743e-06  27.4823  0.10793    4.7737e-05
Llama-2-7B/H100-80G-SXM/tp1/vidur     vidur           116298   6.2482   4.4267   0.021449   2.0465e-06  6.0464   0.011525   0.0002041
CodeLlama-34B/H100-80G-SXM/tp2/vidur  vidur           414091   15.8639  6.2095   0.061773   2.3635e-06  14.865   0.025342   3.8127e-05
Llama-2-70B/H100-80G-SXM/tp2/vidur    vidur           33414    30.2147  7.788    0.12436    3.0778e-06  28.6987  0.038987   6.2356e-05
Llama-2-70B/H100-80G-SXM/tp4/vidur    vidur           487821   18.5568  10.9645  0.068966   4.5315e-06  17.6131  0.029762   3.1558e-05
Llama-2-7B/A40-48G/tp1/vidur          vidur           52440    27.2809  15.7476  0.11717    1.2445e-05  24.7812  0.069272   0.0009863
CodeLlama-34B/A40-48G/tp2/vidur       vidur           73515    67.7083  32.9713  0.32823    2.3512e-05  64.8166  0.17256    0.00018694
Llama-2-70B/A40-48G/tp4/vidur         vidur           79130    77.4234  38.8336  0.39698    2.3212e-05  70.1964  0.22239    0.00014619
`
