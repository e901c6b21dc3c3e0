/* Runs an exported model once: numbers from standard input, the outputs on standard output, one number a line.
 *
 *     >>> exe = al.compile(al.from_onnx("classifier.onnx"), "tuning.db")    # input "image" 1x3x8x8, output "scores" 1x10
 *     >>> exe.export("classifier.so")
 *
 *     cc -O2 run_model.c classifier.so -Wl,-rpath,'$ORIGIN' -o run_model
 *     ./run_model < image.txt
 */
#include <stdio.h>

#include "classifier.h"

enum { IMAGE = 1 * 3 * 8 * 8, SCORES = 1 * 10 };

int main(void) {
    static float image[IMAGE], scores[SCORES];

    for (int i = 0; i < IMAGE; ++i)
        if (scanf("%f", &image[i]) != 1) {
            fprintf(stderr, "number %d of %d is missing\n", i + 1, IMAGE);
            return 2;
        }

    classifier *model = classifier_create();
    if (model == NULL) {
        fprintf(stderr, "no memory for the model\n");
        return 1;
    }
    classifier_run(model, image, scores);
    classifier_destroy(model);

    for (int i = 0; i < SCORES; ++i)
        printf("%.9g\n", scores[i]);
    return 0;
}
