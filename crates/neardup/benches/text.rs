//! Measures signatures of texts in many scripts, in multiples of the time of MD5: `cargo bench -p neardup --bench
//! text`. For each, takes the fastest of the rounds, in which all take turns.

use md5::{Digest, Md5};
use neardup::hash::Key;
use neardup::minhash::Signing;
use neardup::shingle::Shingling;
use neardup::simhash::{self, Weighting, Width};
use neardup::text::{Fold, Unit};
use std::hint::black_box;
use std::time::Instant;

/// The length of an article, in bytes.
const BYTES: usize = 1700;
const ROUNDS: usize = 501;

/// Sentences, to be repeated.
const TEXTS: [(&str, &str); 14] = [
    (
        "English",
        "The harbor authority said on Monday that the new pier will open in March, two months later than planned. ",
    ),
    (
        "German",
        "Die Hafenbehörde sagte am Montag, die neue Brücke werde im März eröffnet, später als geplant; größere Schäden gebe es nicht. ",
    ),
    (
        "Vietnamese",
        "Cảng vụ cho biết hôm thứ Hai rằng bến tàu mới sẽ mở cửa vào tháng Ba, muộn hơn hai tháng so với kế hoạch. ",
    ),
    (
        "Vietnamese, decomposed",
        "Ca\u{309}ng vu\u{323} cho bie\u{302}\u{301}t ho\u{302}m thu\u{31b}\u{301} Hai ra\u{306}\u{300}ng be\u{302}\u{301}n ta\u{300}u mo\u{31b}\u{301}i se\u{303} mo\u{31b}\u{309} cu\u{31b}\u{309}a. ",
    ),
    (
        "Russian",
        "Администрация порта сообщила в понедельник, что новый причал откроется в марте, на два месяца позже. ",
    ),
    (
        "Greek",
        "Η λιμενική αρχή ανακοίνωσε τη Δευτέρα ότι η νέα προβλήτα θα ανοίξει τον Μάρτιο, δύο μήνες αργότερα. ",
    ),
    (
        "Arabic",
        "قالت سلطة الميناء يوم الاثنين إن الرصيف الجديد سيفتح في شهر مارس، متأخرا شهرين عن الموعد المقرر. ",
    ),
    (
        "Arabic, vocalized",
        "قَالَتْ سُلْطَةُ المِينَاءِ يَوْمَ الاِثْنَيْنِ إِنَّ الرَّصِيفَ الجَدِيدَ سَيُفْتَحُ فِي شَهْرِ مَارِسَ. ",
    ),
    (
        "Hindi",
        "बंदरगाह प्राधिकरण ने सोमवार को कहा कि नया घाट मार्च में खुलेगा, योजना से दो महीने बाद। ",
    ),
    (
        "Thai",
        "การท่าเรือกล่าวเมื่อวันจันทร์ว่าท่าเรือใหม่จะเปิดในเดือนมีนาคม ช้ากว่ากำหนดสองเดือน ",
    ),
    (
        "Chinese",
        "港务局星期一表示，新码头将于三月启用，比原计划晚两个月，因为钢材交付延迟。",
    ),
    (
        "Japanese",
        "港湾局は月曜日、新しい桟橋が予定より二か月遅れて三月に開くと発表しました。",
    ),
    (
        "Korean",
        "항만청은 월요일에 새 부두가 예정보다 두 달 늦은 삼월에 문을 연다고 밝혔다. ",
    ),
    (
        "Full width",
        "Ｔｈｅ　ｈａｒｂｏｕｒ　ａｕｔｈｏｒｉｔｙ　ｓａｉｄ　ｏｎ　Ｍｏｎｄａｙ ㎏ ﬁ ﷺ ½ ",
    ),
];

fn signing(unit: Unit, fold: Fold) -> Signing {
    Signing {
        shingling: Shingling { k: 3, unit, fold },
        slots: 128,
        key: Key::from_seed(0),
    }
}

fn seconds(run: &dyn Fn()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn main() {
    let columns = ["simhash", "word", "none", "marks", "char"];
    print!("{:24} {:>8}", "times MD5", "MD5, ns");
    columns.iter().for_each(|column| print!(" {column:>8}"));
    println!();
    let width = Width::new(64).expect("valid");
    for (name, sentence) in TEXTS {
        let text = sentence.repeat(BYTES / sentence.len());
        let doc = text.as_bytes();
        let simhash = || {
            let Signing { shingling, key, .. } = signing(Unit::Word, Fold::Case);
            simhash::document(
                doc,
                &shingling,
                &key,
                width,
                Weighting::Logarithm,
                &mut || (),
            )
        };
        let sign = |unit, fold| signing(unit, fold).sign(doc, &mut || ());
        let runs: [&dyn Fn(); 6] = [
            &|| {
                black_box(Md5::digest(black_box(doc)));
            },
            &|| drop(black_box(simhash())),
            &|| drop(black_box(sign(Unit::Word, Fold::Case))),
            &|| drop(black_box(sign(Unit::Word, Fold::None))),
            &|| drop(black_box(sign(Unit::Word, Fold::Marks))),
            &|| drop(black_box(sign(Unit::Char, Fold::Case))),
        ];
        let mut fastest = [f64::INFINITY; 6];
        for _ in 0..ROUNDS {
            for (fastest, run) in fastest.iter_mut().zip(runs) {
                *fastest = fastest.min(seconds(run));
            }
        }
        print!("{name:24} {:8.0}", fastest[0] * 1e9);
        fastest[1..]
            .iter()
            .for_each(|time| print!(" {:8.2}", time / fastest[0]));
        println!();
    }
}
