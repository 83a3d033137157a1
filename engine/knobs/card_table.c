// SPDX-License-Identifier: Apache-2.0
// The cards. FLOP/s are dense, with float32 accumulation, as the sheets print them; where a sheet prints none (GeForce),
// multiprocessors x clock x what a multiprocessor of that generation does at a clock (the whitepapers; tests/unit/
// test_card_table.c computes them all again). vram is what nvidia-smi shows where that is known, else the sheet's. context
// is an estimate: what the driver keeps of the card for itself and what one CUDA context with lazily loaded kernels takes:
// 300 MiB, 3 MiB for each multiprocessor (kernels' local memory) and 0.3 % of the memory (its tables); a T4's and some
// others' as published. An H100 SXM's are measured: vram is what the driver gives (cuDeviceTotalMem: 81,079 MiB of the 81,559
// that nvidia-smi shows), context what NVML counts of a process beside its pool: 526 MiB with cuBLASLt, 536 with cuDNN, 538
// for ResNet-50 in bfloat16, and 9 MiB that are used without a process.
#include "knobs/card_table.h"

#include <string.h>

#include "headroom/units.h"

#include "base/text.h"

#define GEFORCE                                                                                              \
    "nvidia.com/geforce, specifications: cores, boost clock, memory; rates of a multiprocessor as in the "
#define LAPTOP                                                                                               \
    "nvidia.com/geforce/laptops: cores, memory, the highest boost clock a maker may set; rates as in the "

#define P100_SHEET "NVIDIA Tesla P100 PCIe data sheet; Pascal architecture whitepaper, table 1"
#define V100_WHITE "NVIDIA Tesla V100 GPU architecture whitepaper, table 1"
#define T4_WHITE                                                                                             \
    "NVIDIA Turing GPU architecture whitepaper, appendix C; vram and context from TensorFlow's log on a T4"
#define GA102_WHITE "NVIDIA Ampere GA102 GPU architecture whitepaper, appendix A"
#define A10_SHEET   "NVIDIA A10 data sheet"
#define A30_SHEET   "NVIDIA A30 data sheet"
#define A40_SHEET   "NVIDIA A40 data sheet"
#define A6000_SHEET "NVIDIA Ampere GA102 GPU architecture whitepaper, table 9 (RTX A6000)"
#define A100_SHEET                                                                                           \
    "NVIDIA A100 data sheet; A100 architecture whitepaper, table 1, for rates outside tensor cores"
#define ORIN_BRIEF                                                                                           \
    "NVIDIA Jetson AGX Orin series technical brief 1.2; Jetson modules' data sheets; memory is shared with " \
    "the system"
#define ADA_WHITE     "NVIDIA Ada GPU architecture whitepaper, appendix A"
#define L4_SHEET      "NVIDIA L4 data sheet (halved: printed with sparsity)"
#define L40S_SHEET    "NVIDIA L40S data sheet"
#define RTX6000_SHEET "NVIDIA RTX 6000 Ada data sheet; rates as in the Ada whitepaper"
#define H100_SHEET                                                                                           \
    "NVIDIA H100 data sheet (tensor rates halved: printed with sparsity); H100 architecture whitepaper, "    \
    "table 2"
#define H100_SXM_SHEET H100_SHEET "; memory: driver 580.159.04"
#define H100_NVL_SHEET "NVIDIA H100 NVL data sheet (tensor rates halved: printed with sparsity)"
#define GH200_SHEET    "NVIDIA GH200 Grace Hopper superchip data sheet (tensor rates halved); link is NVLink-C2C"
#define H200_SHEET                                                                                           \
    "NVIDIA H200 data sheet (tensor rates halved: printed with sparsity); H100 whitepaper for the vector "   \
    "rates"
#define B200_SHEET                                                                                           \
    "NVIDIA HGX B200 data sheet (tensor rates halved: printed with sparsity); bus as CUDA reports it"
#define BLACKWELL_WHITE "NVIDIA RTX Blackwell GPU architecture whitepaper, appendix A"
#define GEFORCE_10      GEFORCE "Pascal whitepaper"
#define GEFORCE_16      GEFORCE "Turing whitepaper"
#define GEFORCE_20      GEFORCE "Turing whitepaper"
#define GEFORCE_30      GEFORCE "GA102 whitepaper"
#define GEFORCE_40      GEFORCE "Ada whitepaper"
#define GEFORCE_50      GEFORCE "RTX Blackwell whitepaper"
#define LAPTOP_30       LAPTOP "GA102 whitepaper"
#define LAPTOP_40       LAPTOP "Ada whitepaper"
#define LAPTOP_50       LAPTOP "RTX Blackwell whitepaper"

// name, title, family, year, compute capability, multiprocessors, MHz, MHz of tensor cores (0: the same), bus bits,
// Gbit/s of a pin, MiB of vram, MiB of context, / GB/s of the link (one way), GB/s of memory,
// TFLOP/s {float32, tf32, float16, bfloat16, float64 (the faster of both), and outside tensor cores: float16, bfloat16,
// float64; 0: not native}, source
static const card_row rows[] = {
    // clang-format off
    {"p100-16g", "NVIDIA Tesla P100-PCIE-16GB", "pascal", 2016, 60, 56, 1303, 0, 4096, 1.43, 16384, 520,
     15.8, 732, {9.3, 0, 18.7, 0, 4.7, 18.7, 0, 4.7}, P100_SHEET},
    {"gtx1080-ti-11g", "NVIDIA GeForce GTX 1080 Ti", "pascal", 2017, 61, 28, 1582, 0, 352, 11, 11264, 420,
     15.8, 484, {11.3, 0, 0, 0, 0.354, 0, 0, 0.354}, GEFORCE_10},
    {"v100-16g", "NVIDIA Tesla V100-SXM2-16GB", "volta", 2017, 70, 80, 1530, 0, 4096, 1.752, 16384, 590,
     15.8, 900, {15.7, 0, 125, 0, 7.8, 31.4, 0, 7.8}, V100_WHITE},
    {"v100-32g", "NVIDIA Tesla V100-SXM2-32GB", "volta", 2018, 70, 80, 1530, 0, 4096, 1.752, 32768, 640,
     15.8, 900, {15.7, 0, 125, 0, 7.8, 31.4, 0, 7.8}, V100_WHITE},
    {"t4-16g", "NVIDIA Tesla T4", "turing", 2018, 75, 40, 1590, 0, 256, 10, 15360, 361,
     15.8, 320, {8.1, 0, 65, 0, 0.254, 16.3, 0, 0.254}, T4_WHITE},
    {"gtx1650-4g", "NVIDIA GeForce GTX 1650", "turing", 2019, 75, 14, 1665, 0, 128, 8, 4096, 350,
     15.8, 128, {2.98, 0, 5.97, 0, 0.0932, 5.97, 0, 0.0932}, GEFORCE_16},
    {"rtx2060-6g", "NVIDIA GeForce RTX 2060", "turing", 2019, 75, 30, 1680, 0, 192, 14, 6144, 410,
     15.8, 336, {6.45, 0, 25.8, 0, 0.202, 12.9, 0, 0.202}, GEFORCE_20},
    {"rtx2060-super-8g", "NVIDIA GeForce RTX 2060 SUPER", "turing", 2019, 75, 34, 1650, 0, 256, 14, 8192, 430,
     15.8, 448, {7.18, 0, 28.7, 0, 0.224, 14.4, 0, 0.224}, GEFORCE_20},
    {"rtx2070-8g", "NVIDIA GeForce RTX 2070", "turing", 2018, 75, 36, 1620, 0, 256, 14, 8192, 430,
     15.8, 448, {7.46, 0, 29.9, 0, 0.233, 14.9, 0, 0.233}, GEFORCE_20},
    {"rtx2070-super-8g", "NVIDIA GeForce RTX 2070 SUPER", "turing", 2019, 75, 40, 1770, 0, 256, 14, 8192, 440,
     15.8, 448, {9.06, 0, 36.2, 0, 0.283, 18.1, 0, 0.283}, GEFORCE_20},
    {"rtx2080-8g", "NVIDIA GeForce RTX 2080", "turing", 2018, 75, 46, 1710, 0, 256, 14, 8192, 460,
     15.8, 448, {10.1, 0, 40.3, 0, 0.315, 20.1, 0, 0.315}, GEFORCE_20},
    {"rtx2080-super-8g", "NVIDIA GeForce RTX 2080 SUPER", "turing", 2019, 75, 48, 1815, 0, 256, 15.5, 8192, 470,
     15.8, 496, {11.2, 0, 44.6, 0, 0.348, 22.3, 0, 0.348}, GEFORCE_20},
    {"rtx2080-ti-11g", "NVIDIA GeForce RTX 2080 Ti", "turing", 2018, 75, 68, 1545, 0, 352, 14, 11264, 540,
     15.8, 616, {13.4, 0, 53.8, 0, 0.42, 26.9, 0, 0.42}, GEFORCE_20},
    {"rtx3050-6g", "NVIDIA GeForce RTX 3050 6GB", "ampere", 2024, 86, 18, 1470, 0, 96, 14, 6144, 370,
     15.8, 168, {6.77, 6.77, 13.5, 13.5, 0.106, 6.77, 6.77, 0.106}, GEFORCE_30},
    {"rtx3050-8g", "NVIDIA GeForce RTX 3050", "ampere", 2022, 86, 20, 1777, 0, 128, 14, 8192, 380,
     15.8, 224, {9.1, 9.1, 18.2, 18.2, 0.142, 9.1, 9.1, 0.142}, GEFORCE_30},
    {"rtx3060-8g", "NVIDIA GeForce RTX 3060 8GB", "ampere", 2022, 86, 28, 1777, 0, 128, 15, 8192, 410,
     31.5, 240, {12.7, 12.7, 25.5, 25.5, 0.199, 12.7, 12.7, 0.199}, GEFORCE_30},
    {"rtx3060-12g", "NVIDIA GeForce RTX 3060", "ampere", 2021, 86, 28, 1777, 0, 192, 15, 12288, 500,
     31.5, 360, {12.7, 12.7, 25.5, 25.5, 0.199, 12.7, 12.7, 0.199}, GEFORCE_30},
    {"rtx3060-ti-8g", "NVIDIA GeForce RTX 3060 Ti", "ampere", 2020, 86, 38, 1665, 0, 256, 14, 8192, 440,
     31.5, 448, {16.2, 16.2, 32.4, 32.4, 0.253, 16.2, 16.2, 0.253}, GEFORCE_30},
    {"rtx3070-8g", "NVIDIA GeForce RTX 3070", "ampere", 2020, 86, 46, 1725, 0, 256, 14, 8192, 480,
     31.5, 448, {20.3, 20.3, 40.6, 40.6, 0.317, 20.3, 20.3, 0.317}, GA102_WHITE},
    {"rtx3070-ti-8g", "NVIDIA GeForce RTX 3070 Ti", "ampere", 2021, 86, 48, 1770, 0, 256, 19, 8192, 470,
     31.5, 608, {21.7, 21.7, 43.5, 43.5, 0.34, 21.7, 21.7, 0.34}, GEFORCE_30},
    {"rtx3080-10g", "NVIDIA GeForce RTX 3080", "ampere", 2020, 86, 68, 1710, 0, 320, 19, 10240, 530,
     31.5, 760, {29.8, 29.8, 59.5, 59.5, 0.465, 29.8, 29.8, 0.465}, GA102_WHITE},
    {"rtx3080-12g", "NVIDIA GeForce RTX 3080 12GB", "ampere", 2022, 86, 70, 1710, 0, 384, 19, 12288, 550,
     31.5, 912, {30.6, 30.6, 61.3, 61.3, 0.479, 30.6, 30.6, 0.479}, GEFORCE_30},
    {"rtx3080-ti-12g", "NVIDIA GeForce RTX 3080 Ti", "ampere", 2021, 86, 80, 1665, 0, 384, 19, 12288, 580,
     31.5, 912, {34.1, 34.1, 68.2, 68.2, 0.533, 34.1, 34.1, 0.533}, GEFORCE_30},
    {"rtx3090-24g", "NVIDIA GeForce RTX 3090", "ampere", 2020, 86, 82, 1695, 0, 384, 19.5, 24576, 620,
     31.5, 936, {35.6, 35.6, 71.2, 71.2, 0.556, 35.6, 35.6, 0.556}, GA102_WHITE},
    {"rtx3090-ti-24g", "NVIDIA GeForce RTX 3090 Ti", "ampere", 2022, 86, 84, 1860, 0, 384, 21, 24564, 630,
     31.5, 1008, {40, 40, 80, 80, 0.625, 40, 40, 0.625}, GEFORCE_30},
    {"rtx3050-laptop-4g", "NVIDIA GeForce RTX 3050 Laptop GPU", "ampere", 2021, 86, 16, 1740, 0, 128, 12, 4096, 360,
     15.8, 192, {7.13, 7.13, 14.3, 14.3, 0.111, 7.13, 7.13, 0.111}, LAPTOP_30},
    {"rtx3050-ti-laptop-4g", "NVIDIA GeForce RTX 3050 Ti Laptop GPU", "ampere", 2021, 86, 20, 1695, 0, 128, 12, 4096, 370,
     15.8, 192, {8.68, 8.68, 17.4, 17.4, 0.136, 8.68, 8.68, 0.136}, LAPTOP_30},
    {"rtx3060-laptop-6g", "NVIDIA GeForce RTX 3060 Laptop GPU", "ampere", 2021, 86, 30, 1703, 0, 192, 14, 6144, 410,
     31.5, 336, {13.1, 13.1, 26.2, 26.2, 0.204, 13.1, 13.1, 0.204}, LAPTOP_30},
    {"rtx3070-laptop-8g", "NVIDIA GeForce RTX 3070 Laptop GPU", "ampere", 2021, 86, 40, 1620, 0, 256, 14, 8192, 440,
     31.5, 448, {16.6, 16.6, 33.2, 33.2, 0.259, 16.6, 16.6, 0.259}, LAPTOP_30},
    {"rtx3070-ti-laptop-8g", "NVIDIA GeForce RTX 3070 Ti Laptop GPU", "ampere", 2022, 86, 46, 1485, 0, 256, 14, 8192, 460,
     31.5, 448, {17.5, 17.5, 35, 35, 0.273, 17.5, 17.5, 0.273}, LAPTOP_30},
    {"rtx3080-laptop-8g", "NVIDIA GeForce RTX 3080 Laptop GPU 8GB", "ampere", 2021, 86, 48, 1710, 0, 256, 14, 8192, 470,
     31.5, 448, {21, 21, 42, 42, 0.328, 21, 21, 0.328}, LAPTOP_30},
    {"rtx3080-laptop-16g", "NVIDIA GeForce RTX 3080 Laptop GPU", "ampere", 2021, 86, 48, 1710, 0, 256, 14, 16384, 490,
     31.5, 448, {21, 21, 42, 42, 0.328, 21, 21, 0.328}, LAPTOP_30},
    {"rtx3080-ti-laptop-16g", "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "ampere", 2022, 86, 58, 1590, 0, 256, 16, 16384, 520,
     31.5, 512, {23.6, 23.6, 47.2, 47.2, 0.369, 23.6, 23.6, 0.369}, LAPTOP_30},
    {"a10-24g", "NVIDIA A10", "ampere", 2021, 86, 72, 1695, 0, 384, 12.5, 23028, 590,
     31.5, 600, {31.2, 62.5, 125, 125, 0.488, 31.2, 31.2, 0.488}, A10_SHEET},
    {"a30-24g", "NVIDIA A30", "ampere", 2021, 80, 56, 1440, 0, 3072, 2.43, 24576, 540,
     31.5, 933, {10.3, 82, 165, 165, 10.3, 41.3, 20.6, 5.2}, A30_SHEET},
    {"a40-48g", "NVIDIA A40", "ampere", 2020, 86, 84, 1740, 0, 384, 14.5, 46068, 690,
     31.5, 696, {37.4, 74.8, 149.7, 149.7, 0.585, 37.4, 37.4, 0.585}, A40_SHEET},
    {"rtxa6000-48g", "NVIDIA RTX A6000", "ampere", 2020, 86, 84, 1800, 0, 384, 16, 49140, 700,
     31.5, 768, {38.7, 77.4, 154.8, 154.8, 0.605, 38.7, 38.7, 0.605}, A6000_SHEET},
    {"a100-40g", "NVIDIA A100-SXM4-40GB", "ampere", 2020, 80, 108, 1410, 0, 5120, 2.43, 40960, 1200,
     31.5, 1555, {19.5, 156, 312, 312, 19.5, 78, 39, 9.7}, A100_SHEET},
    {"a100-80g", "NVIDIA A100-SXM4-80GB", "ampere", 2020, 80, 108, 1410, 0, 5120, 3.186, 81920, 1200,
     31.5, 2039, {19.5, 156, 312, 312, 19.5, 78, 39, 9.7}, A100_SHEET},
    {"jetson-orin-nano-8g", "NVIDIA Jetson Orin Nano 8GB", "ampere", 2023, 87, 8, 1020, 0, 128, 6.4, 8192, 350,
     51.2, 102.4, {2.09, 8.36, 16.7, 16.7, 0.0326, 4.18, 4.18, 0.0326}, ORIN_BRIEF},
    {"jetson-orin-nx-16g", "NVIDIA Jetson Orin NX 16GB", "ampere", 2023, 87, 8, 918, 0, 128, 6.4, 16384, 370,
     51.2, 102.4, {1.88, 7.52, 15, 15, 0.0294, 3.76, 3.76, 0.0294}, ORIN_BRIEF},
    {"jetson-agx-orin-32g", "NVIDIA Jetson AGX Orin 32GB", "ampere", 2022, 87, 14, 930, 0, 256, 6.4, 32768, 440,
     102.4, 204.8, {3.33, 13.3, 26.7, 26.7, 0.0521, 6.67, 6.67, 0.0521}, ORIN_BRIEF},
    {"jetson-agx-orin-64g", "NVIDIA Jetson AGX Orin 64GB", "ampere", 2022, 87, 16, 1300, 0, 256, 6.4, 65536, 540,
     102.4, 204.8, {5.32, 21.3, 42.6, 42.6, 0.0832, 10.6, 10.6, 0.0832}, ORIN_BRIEF},
    {"rtx4060-8g", "NVIDIA GeForce RTX 4060", "ada", 2023, 89, 24, 2460, 0, 128, 17, 8188, 400,
     15.8, 272, {15.1, 15.1, 30.2, 30.2, 0.236, 15.1, 15.1, 0.236}, GEFORCE_40},
    {"rtx4060-ti-8g", "NVIDIA GeForce RTX 4060 Ti", "ada", 2023, 89, 34, 2535, 0, 128, 18, 8188, 430,
     15.8, 288, {22.1, 22.1, 44.1, 44.1, 0.345, 22.1, 22.1, 0.345}, GEFORCE_40},
    {"rtx4060-ti-16g", "NVIDIA GeForce RTX 4060 Ti 16GB", "ada", 2023, 89, 34, 2535, 0, 128, 18, 16380, 450,
     15.8, 288, {22.1, 22.1, 44.1, 44.1, 0.345, 22.1, 22.1, 0.345}, GEFORCE_40},
    {"rtx4070-12g", "NVIDIA GeForce RTX 4070", "ada", 2023, 89, 46, 2475, 0, 192, 21, 12282, 470,
     31.5, 504, {29.1, 29.1, 58.3, 58.3, 0.455, 29.1, 29.1, 0.455}, GEFORCE_40},
    {"rtx4070-super-12g", "NVIDIA GeForce RTX 4070 SUPER", "ada", 2024, 89, 56, 2475, 0, 192, 21, 12282, 500,
     31.5, 504, {35.5, 35.5, 71, 71, 0.554, 35.5, 35.5, 0.554}, GEFORCE_40},
    {"rtx4070-ti-12g", "NVIDIA GeForce RTX 4070 Ti", "ada", 2023, 89, 60, 2610, 0, 192, 21, 12282, 520,
     31.5, 504, {40.1, 40.1, 80.2, 80.2, 0.626, 40.1, 40.1, 0.626}, GEFORCE_40},
    {"rtx4070-ti-super-16g", "NVIDIA GeForce RTX 4070 Ti SUPER", "ada", 2024, 89, 66, 2610, 0, 256, 21, 16376, 550,
     31.5, 672, {44.1, 44.1, 88.2, 88.2, 0.689, 44.1, 44.1, 0.689}, GEFORCE_40},
    {"rtx4080-16g", "NVIDIA GeForce RTX 4080", "ada", 2022, 89, 76, 2505, 0, 256, 22.4, 16376, 580,
     31.5, 716.8, {48.7, 48.7, 97.5, 97.5, 0.762, 48.7, 48.7, 0.762}, ADA_WHITE},
    {"rtx4080-super-16g", "NVIDIA GeForce RTX 4080 SUPER", "ada", 2024, 89, 80, 2550, 0, 256, 23, 16376, 590,
     31.5, 736, {52.2, 52.2, 104.4, 104.4, 0.816, 52.2, 52.2, 0.816}, GEFORCE_40},
    {"rtx4090-24g", "NVIDIA GeForce RTX 4090", "ada", 2022, 89, 128, 2520, 0, 384, 21, 24564, 770,
     31.5, 1008, {82.6, 82.6, 165.2, 165.2, 1.29, 82.6, 82.6, 1.29}, ADA_WHITE},
    {"rtx4050-laptop-6g", "NVIDIA GeForce RTX 4050 Laptop GPU", "ada", 2023, 89, 20, 2370, 0, 96, 16, 6141, 380,
     15.8, 192, {12.1, 12.1, 24.3, 24.3, 0.19, 12.1, 12.1, 0.19}, LAPTOP_40},
    {"rtx4060-laptop-8g", "NVIDIA GeForce RTX 4060 Laptop GPU", "ada", 2023, 89, 24, 2370, 0, 128, 16, 8188, 400,
     15.8, 256, {14.6, 14.6, 29.1, 29.1, 0.228, 14.6, 14.6, 0.228}, LAPTOP_40},
    {"rtx4070-laptop-8g", "NVIDIA GeForce RTX 4070 Laptop GPU", "ada", 2023, 89, 36, 2175, 0, 128, 16, 8188, 430,
     15.8, 256, {20, 20, 40.1, 40.1, 0.313, 20, 20, 0.313}, LAPTOP_40},
    {"rtx4080-laptop-12g", "NVIDIA GeForce RTX 4080 Laptop GPU", "ada", 2023, 89, 58, 2280, 0, 192, 18, 12282, 510,
     31.5, 432, {33.9, 33.9, 67.7, 67.7, 0.529, 33.9, 33.9, 0.529}, LAPTOP_40},
    {"rtx4090-laptop-16g", "NVIDIA GeForce RTX 4090 Laptop GPU", "ada", 2023, 89, 76, 2040, 0, 256, 18, 16376, 580,
     31.5, 576, {39.7, 39.7, 79.4, 79.4, 0.62, 39.7, 39.7, 0.62}, LAPTOP_40},
    {"l4-24g", "NVIDIA L4", "ada", 2023, 89, 58, 2040, 0, 192, 12.5, 23034, 540,
     31.5, 300, {30.3, 60, 121, 121, 0.473, 30.3, 30.3, 0.473}, L4_SHEET},
    {"l40s-48g", "NVIDIA L40S", "ada", 2023, 89, 142, 2520, 0, 384, 18, 46068, 860,
     31.5, 864, {91.6, 183, 362.05, 362.05, 1.43, 91.6, 91.6, 1.43}, L40S_SHEET},
    {"rtx6000-ada-48g", "NVIDIA RTX 6000 Ada Generation", "ada", 2022, 89, 142, 2505, 0, 384, 20, 49140, 870,
     31.5, 960, {91.1, 182.1, 364.2, 364.2, 1.42, 91.1, 91.1, 1.42}, RTX6000_SHEET},
    {"h100-pcie-80g", "NVIDIA H100 PCIe", "hopper", 2022, 90, 114, 1755, 1620, 5120, 3.186, 81559, 890,
     63, 2000, {51.2, 378, 756, 756, 51.2, 102.4, 102.4, 25.6}, H100_SHEET},
    {"h100-80g", "NVIDIA H100 80GB HBM3", "hopper", 2022, 90, 132, 1980, 1830, 5120, 5.2, 81079, 546,
     63, 3350, {67, 494.5, 989, 989, 67, 133.8, 133.8, 34}, H100_SXM_SHEET},
    {"h100-nvl-94g", "NVIDIA H100 NVL", "hopper", 2023, 90, 132, 1785, 1545, 6144, 5.1, 95830, 980,
     63, 3900, {60, 417.5, 835.5, 835.5, 60, 120.6, 120.6, 30}, H100_NVL_SHEET},
    {"gh200-96g", "NVIDIA GH200 480GB", "hopper", 2023, 90, 132, 1980, 1830, 6144, 5.2, 97871, 990,
     450, 4000, {67, 494.5, 989, 989, 67, 133.8, 133.8, 34}, GH200_SHEET},
    {"h200-141g", "NVIDIA H200", "hopper", 2024, 90, 132, 1980, 1830, 6144, 6.25, 143771, 1150,
     63, 4800, {67, 494.5, 989, 989, 67, 133.8, 133.8, 34}, H200_SHEET},
    {"b200-180g", "NVIDIA B200", "blackwell", 2024, 100, 148, 1980, 1856, 7680, 7.992, 183359, 1290,
     63, 7700, {75, 1100, 2250, 2250, 37, 150, 150, 37}, B200_SHEET},
    {"rtx5050-8g", "NVIDIA GeForce RTX 5050", "blackwell", 2025, 120, 20, 2570, 0, 128, 20, 8151, 380,
     31.5, 320, {13.2, 13.2, 26.3, 26.3, 0.206, 13.2, 13.2, 0.206}, GEFORCE_50},
    {"rtx5060-8g", "NVIDIA GeForce RTX 5060", "blackwell", 2025, 120, 30, 2497, 0, 128, 28, 8151, 410,
     31.5, 448, {19.2, 19.2, 38.4, 38.4, 0.3, 19.2, 19.2, 0.3}, GEFORCE_50},
    {"rtx5060-ti-8g", "NVIDIA GeForce RTX 5060 Ti 8GB", "blackwell", 2025, 120, 36, 2572, 0, 128, 28, 8151, 430,
     31.5, 448, {23.7, 23.7, 47.4, 47.4, 0.37, 23.7, 23.7, 0.37}, GEFORCE_50},
    {"rtx5060-ti-16g", "NVIDIA GeForce RTX 5060 Ti 16GB", "blackwell", 2025, 120, 36, 2572, 0, 128, 28, 16311, 460,
     31.5, 448, {23.7, 23.7, 47.4, 47.4, 0.37, 23.7, 23.7, 0.37}, GEFORCE_50},
    {"rtx5070-12g", "NVIDIA GeForce RTX 5070", "blackwell", 2025, 120, 48, 2512, 0, 192, 28, 12227, 480,
     63, 672, {30.9, 30.9, 61.7, 61.7, 0.482, 30.9, 30.9, 0.482}, GEFORCE_50},
    {"rtx5070-ti-16g", "NVIDIA GeForce RTX 5070 Ti", "blackwell", 2025, 120, 70, 2452, 0, 256, 28, 16303, 560,
     63, 896, {43.9, 43.9, 87.9, 87.9, 0.687, 43.9, 43.9, 0.687}, GEFORCE_50},
    {"rtx5080-16g", "NVIDIA GeForce RTX 5080", "blackwell", 2025, 120, 84, 2617, 0, 256, 30, 16303, 600,
     63, 960, {56.3, 56.3, 112.6, 112.6, 0.879, 56.3, 56.3, 0.879}, BLACKWELL_WHITE},
    {"rtx5090-32g", "NVIDIA GeForce RTX 5090", "blackwell", 2025, 120, 170, 2407, 0, 512, 28, 32607, 910,
     63, 1792, {104.8, 104.8, 209.5, 209.5, 1.64, 104.8, 104.8, 1.64}, BLACKWELL_WHITE},
    {"rtx5050-laptop-8g", "NVIDIA GeForce RTX 5050 Laptop GPU", "blackwell", 2025, 120, 20, 2662, 0, 128, 24, 8151, 380,
     31.5, 384, {13.6, 13.6, 27.3, 27.3, 0.213, 13.6, 13.6, 0.213}, LAPTOP_50},
    {"rtx5060-laptop-8g", "NVIDIA GeForce RTX 5060 Laptop GPU", "blackwell", 2025, 120, 26, 2497, 0, 128, 24, 8151, 400,
     31.5, 384, {16.6, 16.6, 33.2, 33.2, 0.26, 16.6, 16.6, 0.26}, LAPTOP_50},
    {"rtx5070-laptop-8g", "NVIDIA GeForce RTX 5070 Laptop GPU", "blackwell", 2025, 120, 36, 2347, 0, 128, 24, 8151, 430,
     31.5, 384, {21.6, 21.6, 43.3, 43.3, 0.338, 21.6, 21.6, 0.338}, LAPTOP_50},
    {"rtx5070-ti-laptop-12g", "NVIDIA GeForce RTX 5070 Ti Laptop GPU", "blackwell", 2025, 120, 46, 2220, 0, 192, 28, 12227, 470,
     63, 672, {26.1, 26.1, 52.3, 52.3, 0.408, 26.1, 26.1, 0.408}, LAPTOP_50},
    {"rtx5080-laptop-16g", "NVIDIA GeForce RTX 5080 Laptop GPU", "blackwell", 2025, 120, 60, 2287, 0, 256, 28, 16303, 530,
     63, 896, {35.1, 35.1, 70.3, 70.3, 0.549, 35.1, 35.1, 0.549}, LAPTOP_50},
    {"rtx5090-laptop-24g", "NVIDIA GeForce RTX 5090 Laptop GPU", "blackwell", 2025, 120, 82, 2160, 0, 256, 28, 24463, 620,
     63, 896, {45.3, 45.3, 90.7, 90.7, 0.708, 45.3, 45.3, 0.708}, LAPTOP_50},
    // clang-format on
};

const card_row *card_rows(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}

// ---- as a card ----------------------------------------------------------------------------------------------------

#define UNLIMITED_AS "a100-80g" // whose times and granularity the card `unlimited` has

enum { LAUNCH_NS = 3000 };

static void take_row(const card_row *row, hr_card *card)
{
    const card_tflops *t = &row->tflops;
    *card = (hr_card){.year = row->year,
                      .multiprocessors = row->multiprocessors,
                      .vram_bytes = row->vram_mib * HR_MIB,
                      .context_bytes = row->context_mib * HR_MIB,
                      .compute_major = row->capability / 10,
                      .compute_minor = row->capability % 10,
                      .memory_bytes_per_second = row->memory_gbytes * 1e9,
                      .float32_flops = t->float32 * 1e12,
                      .tf32_flops = t->tf32 * 1e12,
                      .float16_flops = t->float16 * 1e12,
                      .bfloat16_flops = t->bfloat16 * 1e12,
                      .float64_flops = t->float64 * 1e12,
                      .vector_float16_flops = t->vector_float16 * 1e12,
                      .vector_bfloat16_flops = t->vector_bfloat16 * 1e12,
                      .vector_float64_flops = t->vector_float64 * 1e12,
                      .link_bytes_per_second = row->link_gbytes * 1e9,
                      .launch_seconds = LAUNCH_NS * 1e-9,
                      .granularity_bytes = 2 * HR_MIB};
    (void)text_copy(card->name, sizeof card->name, row->name);
    (void)text_copy(card->title, sizeof card->title, row->title);
    (void)text_copy(card->family, sizeof card->family, row->family);
    (void)text_copy(card->source, sizeof card->source, row->source);
}

bool card_of_table(const char *name, hr_card *card)
{
    const bool endless = strcmp(name, HR_CARD_UNLIMITED) == 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k].name, endless ? UNLIMITED_AS : name) != 0) {
            continue;
        }
        take_row(&rows[k], card);
        if (endless) {
            card->vram_bytes = HR_UNLIMITED_BYTES;
            (void)text_copy(card->name, sizeof card->name, HR_CARD_UNLIMITED);
            (void)text_copy(card->title, sizeof card->title, "no limit, with the times of " UNLIMITED_AS);
        }
        return true;
    }
    return false;
}
